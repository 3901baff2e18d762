//go:build race

package cursor_test

const raceEnabled = true
