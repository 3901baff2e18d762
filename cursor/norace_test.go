//go:build !race

package cursor_test

const raceEnabled = false
