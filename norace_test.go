//go:build !race

package mcpseal

const raceEnabled = false
