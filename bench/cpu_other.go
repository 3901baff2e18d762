//go:build !unix

package main

import "time"

// cpuTime returns the time by the clock: the standard library knows no CPU time here.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// interruptions returns 0: the standard library cannot tell.
func interruptions() int64 { return 0 }
