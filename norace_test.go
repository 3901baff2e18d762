//go:build !race

package tripseal

const raceEnabled = false
