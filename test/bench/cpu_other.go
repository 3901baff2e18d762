//go:build !unix

package main

import "time"

// cpuTime returns the time of the clock, because on this system the standard library
// cannot tell the CPU time.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// interruptions returns 0, because on this system the standard library cannot count
// interruptions.
func interruptions() int64 { return 0 }
