//go:build unix

package probe

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first process of a group, so that killGroup ends what it starts
// as well.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command that has not been waited for, and what it started.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
