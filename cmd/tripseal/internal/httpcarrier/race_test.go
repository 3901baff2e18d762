//go:build race

package httpcarrier

const raceEnabled = true
