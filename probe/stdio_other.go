//go:build !unix

package probe

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends a command. Unlike on Unix, it does not end the processes that the command
// started.
func killGroup(cmd *exec.Cmd) { cmd.Process.Kill() }
