//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns how much CPU time this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
