//go:build unix

package probe

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command its own process group, so that killGroup can also end the processes
// that the command starts.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command and the processes that it started. cmd.Wait must not have returned
// yet.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
