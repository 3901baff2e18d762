package stdiocarrier

import (
	"os"
	"os/exec"
	"syscall"
)

// inOwnGroup gives the child its own process group. So Ctrl+C reaches the carrier alone, which then ends the child.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminate does nothing. On Windows the only polite way to end a process is to end its input.
func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { cmd.Process.Kill() }

func exitCodeOf(state *os.ProcessState) int { return state.ExitCode() }
