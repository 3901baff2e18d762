package keyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// writeBeside writes a document to a temporary file in the folder of path, and returns the name of
// that file. Only the owner can read it. If old is not nil, it describes the file to replace: the
// temporary file gets the same owner, and the group can read it if the group could read that file.
func writeBeside(path string, d *Document, old os.FileInfo) (name string, err error) {
	text := d.Bytes()
	if _, err := Parse(text); err != nil {
		return "", fmt.Errorf("nothing was written, because the file could not be read again: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err = keepOwner(file, old); err != nil {
		return "", fmt.Errorf("the owner of the file cannot be kept, only they and root can change it: %w", err)
	}
	mode := os.FileMode(0o600)
	if old != nil {
		mode |= old.Mode() & 0o040
	}
	if err = file.Chmod(mode); err != nil {
		return "", err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}

// syncFolder writes the folder of a file to disk, where the system can do that, so that a change in
// it survives a crash.
func syncFolder(path string) {
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		folder.Sync()
		folder.Close()
	}
}

// removeLeftovers removes the temporary files of commands that were killed, because they hold
// secrets. The caller has the lock, so no command that runs needs them.
func removeLeftovers(path string) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil || !locksWork {
		return
	}
	for _, entry := range entries {
		random, ok := strings.CutPrefix(entry.Name(), "."+filepath.Base(path)+".")
		random, ok2 := strings.CutSuffix(random, ".new")
		if ok && ok2 && random != "" && strings.Trim(random, "0123456789") == "" {
			os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// Exposed reports whether users other than the owner and its group can read a file, or the group
// can change it.
func Exposed(path string) (mode os.FileMode, exposed bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o026 != 0
}
