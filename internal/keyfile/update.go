package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	fileMode  = 0o600
	lockPause = 20 * time.Millisecond
)

var lockTimeout = 10 * time.Second // changed by a test alone

var (
	// ErrExists is a file that was to be made and is there.
	ErrExists = errors.New("the file exists already")
	// ErrChanged is a file that somebody changed at the same time.
	ErrChanged = errors.New("somebody else changed the file meanwhile; nothing was written")
	// ErrLocked is a file that another command does not let go.
	ErrLocked = errors.New("another command is changing the file")
	// ErrTooLong is a document that could not be read again.
	ErrTooLong = fmt.Errorf("the file would have more than %d bytes: prune it", MaxSize)
)

// Read reads a document.
func Read(path string) (*Document, error) {
	text, _, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Create makes a file, and never replaces one.
func Create(path string, d *Document) error {
	temporary, err := writeBeside(path, d.Bytes(), nil)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return cannot("open its folder", err)
	}
	defer folder.Close()
	if err := os.Link(temporary, path); errors.Is(err, os.ErrExist) {
		return ErrExists
	} else if err != nil {
		return cannot("make the file", err)
	}
	return synced(folder)
}

// Update lets change work on the document in the file and puts the result in its
// place, at once or not at all. Commands wait for each other; whoever writes in
// another way is noticed. It returns the modes that the file had and has.
func Update(path string, change func(*Document) error) (before, after os.FileMode, err error) {
	// A link stays a link: what it leads to is replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, 0, cannot("read the file", err)
	}
	file, info, err := openLocked(target)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close() // and with it the lock
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return 0, 0, cannot("read the file", err)
	}
	document, err := Parse(text)
	if err != nil {
		return 0, 0, err
	}
	if err := change(document); err != nil {
		return 0, 0, err
	}
	changed := document.Bytes()
	if len(changed) > MaxSize {
		return 0, 0, ErrTooLong
	}
	temporary, err := writeBeside(target, changed, info)
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(temporary) // fails once it was renamed
	folder, err := os.Open(filepath.Dir(target))
	if err != nil {
		return 0, 0, cannot("open its folder", err)
	}
	defer folder.Close()
	// What happens between this look and the rename cannot be noticed.
	again, _, err := ReadText(target)
	if err != nil || !bytes.Equal(again, text) {
		return 0, 0, ErrChanged
	}
	if now, err := filepath.EvalSymlinks(path); err != nil || now != target {
		return 0, 0, ErrChanged
	}
	if !locksWork {
		file.Close() // an open file cannot be replaced there
	}
	if err := os.Rename(temporary, target); err != nil {
		return 0, 0, cannot("replace the file", err)
	}
	return info.Mode().Perm(), modeLike(info), synced(folder)
}

// openLocked opens the file that is at path once it has the lock.
func openLocked(path string) (*os.File, os.FileInfo, error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		file, info, err := tryOpenLocked(path)
		if file != nil || err != nil {
			return file, info, err
		}
		if time.Now().After(deadline) {
			return nil, nil, ErrLocked
		}
		time.Sleep(lockPause)
	}
}

// tryOpenLocked returns nil if it has to be tried again.
func tryOpenLocked(path string) (opened *os.File, info os.FileInfo, err error) {
	// Some file systems lock only what is open for writing.
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrPermission) {
		file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, nil, cannot("open the file", err)
	}
	defer func() {
		if opened == nil {
			file.Close()
		}
	}()
	locked, err := tryLock(file)
	if !locked || err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err != nil {
		return nil, nil, cannot("read the file", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	// Whoever had the lock may have put another file in its place.
	if current, err := os.Stat(path); err != nil || !os.SameFile(info, current) {
		return nil, nil, nil
	}
	return file, info, nil
}

// modeLike is the mode of a file that replaces like: a group that was let in by
// itself still is, nobody else.
func modeLike(like os.FileInfo) os.FileMode {
	if like != nil && like.Mode().Perm()&0o044 == 0o040 {
		return fileMode | 0o040
	}
	return fileMode
}

// writeBeside writes a file in the same folder, with the owner of like, if there
// is one.
func writeBeside(path string, text []byte, like os.FileInfo) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), temporaryName(path))
	if err != nil {
		return "", cannot("write in its folder", err)
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err = keepOwner(file, like); err != nil {
		return "", cannot("keep the file's owner: only they and root can change it", err)
	}
	if err = file.Chmod(modeLike(like)); err != nil {
		return "", cannot("set the mode", err)
	}
	if _, err = file.Write(text); err != nil {
		return "", cannot("write in its folder", err)
	}
	if err = file.Sync(); err != nil {
		return "", cannot("write in its folder", err)
	}
	return file.Name(), file.Close()
}

// synced makes a change survive a crash.
func synced(folder *os.File) error {
	if err := ignoreUnsupported(folder.Sync()); err != nil {
		return fmt.Errorf("the file was changed, but that may not survive a crash: %w", cannot("sync its folder", err))
	}
	return nil
}

func temporaryName(path string) string { return "." + filepath.Base(path) + ".*.new" }

// LeftBehind returns files of commands that were killed, or are at work.
func LeftBehind(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var left []string
	for _, entry := range entries {
		if ok, _ := filepath.Match("."+escapeMatch(filepath.Base(path))+".*.new", entry.Name()); ok {
			left = append(left, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return left
}

// escapeMatch takes a name literally.
func escapeMatch(name string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(name)
}
