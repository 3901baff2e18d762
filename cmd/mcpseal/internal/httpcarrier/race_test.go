//go:build race

package httpcarrier

// raceEnabled reports whether the race detector is on.
const raceEnabled = true
