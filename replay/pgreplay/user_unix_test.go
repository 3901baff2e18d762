//go:build unix

package pgreplay_test

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// PostgreSQL does not run as root. So root runs it as the user nobody.
const ordinary = "nobody"

func ids(t *testing.T) (uid, gid int) {
	t.Helper()
	who, err := user.Lookup(ordinary)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ = strconv.Atoi(who.Uid)
	gid, _ = strconv.Atoi(who.Gid)
	return uid, gid
}

func asOrdinaryUser(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() == 0 {
		uid, gid := ids(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = "/"
	}
}

func giveAway(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() == 0 {
		uid, gid := ids(t)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
}
