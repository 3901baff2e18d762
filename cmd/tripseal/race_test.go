//go:build race

package main

// raceEnabled reports whether the race detector is on. The detector makes programs start slowly, so
// tests that start many programs, such as TestScripts, are skipped.
const raceEnabled = true
