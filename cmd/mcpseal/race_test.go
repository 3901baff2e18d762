//go:build race

package main

// raceEnabled reports whether the race detector is on. Programs start slowly then, so tests that
// start many programs are skipped. For example, the scripts start hundreds of programs, none of
// which does two things at once.
const raceEnabled = true
