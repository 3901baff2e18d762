//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns how much CPU time this process has used.
func cpuTime() time.Duration {
	used := usage()
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// interruptions returns how often the system has interrupted a thread of this process to run another thread.
func interruptions() int64 { return int64(usage().Nivcsw) }

func usage() (used syscall.Rusage) {
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used
}
