//go:build race

package main

// raceEnabled reports whether the race detector is on. If it is on, programs start slowly, so
// tests that start many programs are skipped. For example, the scripts start hundreds of programs,
// none of which does two things at once.
const raceEnabled = true
