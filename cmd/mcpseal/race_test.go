//go:build race

package main

// raceEnabled: a program that looks for races takes long to start, and scripts
// start hundreds, none of which does two things at once.
const raceEnabled = true
