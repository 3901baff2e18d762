package stdiocarrier

import (
	"os"
	"os/exec"
	"syscall"
)

// inOwnGroup gives the child a process group, so that Ctrl+C reaches it through the carrier.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate does nothing: Windows has no polite way but the end of the input.
func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { cmd.Process.Kill() }

func exitCodeOf(state *os.ProcessState) int { return state.ExitCode() }
