//go:build unix

package probe

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// closed closes a server. It reports whether Close returned within 30 seconds, which is much more
// time than Close needs.
func closed(t *testing.T, server Server) bool {
	t.Helper()
	done := make(chan struct{})
	go func() { server.Close(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

func hurry(t *testing.T) {
	before := patience
	patience = 50 * time.Millisecond
	t.Cleanup(func() { patience = before })
}

func TestCloseEndsWhatTheCommandStarted(t *testing.T) {
	hurry(t)
	file := filepath.Join(t.TempDir(), "pid")
	for name, script := range map[string]string{
		"waits for it":         `sleep 60 & echo $! >"$0"; wait; true`,
		"ends before it":       `sleep 60 & echo $! >"$0"`,
		"starts it and blocks": `sh -c 'echo $$ >"$0"; exec sleep 60' "$0"; true`,
	} {
		server, err := Stdio(nil, "sh", "-c", script, file)
		if err != nil {
			t.Fatal(err)
		}
		pid := pidIn(t, file)
		os.Remove(file)
		if !closed(t, server) {
			t.Errorf("%s: Close hangs", name)
		}
		gone := false
		for range 500 { // it can take a while until the system has reaped the process
			if gone = syscall.Kill(pid, 0) != nil || zombie(pid); gone {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !gone {
			t.Errorf("%s: process %d goes on", name, pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// pidIn waits until a command has written a process id to a file, and returns the id.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	for range 1000 {
		text, _ := os.ReadFile(file)
		if pid, _ := strconv.Atoi(strings.TrimSpace(string(text))); pid > 0 {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the command did not start")
	return 0
}

func zombie(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestCloseDoesNotWaitForAProcessThatLeftTheGroup(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil {
		t.Skip("there is no setsid on this machine")
	}
	hurry(t)
	file := filepath.Join(t.TempDir(), "pid")
	server, err := Stdio(nil, "sh", "-c", setsid+` sh -c 'echo $$ >"$0"; exec sleep 60' "$0" & wait`, file)
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, file)
	defer syscall.Kill(pid, syscall.SIGKILL)
	if !closed(t, server) {
		t.Error("Close hangs")
	}
}

func TestTheCommandDoesNotInheritAccessTokens(t *testing.T) {
	t.Setenv(BearerVariable, "alice-token")
	t.Setenv(OtherBearerVariable, "bob-token")
	t.Setenv("PROBE_TEST_CHILD", "kept")
	var log bytes.Buffer
	server, err := Stdio(&log, "sh", "-c", `echo "[$`+BearerVariable+`$`+OtherBearerVariable+`$PROBE_TEST_CHILD]" >&2`)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil || log.String() != "[kept]\n" {
		t.Errorf("%v, and the command said %q", err, log.String())
	}
	if len(withoutTokens([]string{"tripseal_probe_bearer=x", "PATH=/"})) != 1 {
		t.Error("names are not compared as Windows does")
	}
}
