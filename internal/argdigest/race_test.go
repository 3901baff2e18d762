//go:build race

package argdigest

const raceEnabled = true
