//go:build !race

package argdigest

const raceEnabled = false
