//go:build !race

package httpcarrier

const raceEnabled = false
