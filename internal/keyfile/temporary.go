package keyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const fileMode = 0o600

// modeLike returns the mode of a new file that replaces an old file. The owner may read and
// write the new file. The group may read it only if the old file was readable by the group, but
// not by others. Others may never read it. The parameter old is nil if there is no old file.
func modeLike(old os.FileInfo) os.FileMode {
	if old != nil && old.Mode().Perm()&0o044 == 0o040 {
		return fileMode | 0o040
	}
	return fileMode
}

// writeBeside writes text to a temporary file in the folder of path, and returns the name of
// that file. If the parameter old is not nil, it describes the file to replace, and the
// temporary file gets the same owner.
func writeBeside(path string, text []byte, old os.FileInfo) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), temporaryName(path))
	if err != nil {
		return "", failedTo("write in its folder", err)
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err = keepOwner(file, old); err != nil {
		return "", failedTo("keep the file's owner: only they and root can change it", err)
	}
	if err = file.Chmod(modeLike(old)); err != nil {
		return "", failedTo("set the mode", err)
	}
	if _, err = file.Write(text); err != nil {
		return "", failedTo("write in its folder", err)
	}
	if err = file.Sync(); err != nil {
		return "", failedTo("write in its folder", err)
	}
	return file.Name(), file.Close()
}

// syncFolder writes the folder to disk, so that a change in it survives a crash.
func syncFolder(folder *os.File) error {
	if err := ignoreUnsupported(folder.Sync()); err != nil {
		return fmt.Errorf("the file was changed, but that may not survive a crash: %w", failedTo("sync its folder", err))
	}
	return nil
}

func temporaryName(path string) string { return "." + filepath.Base(path) + ".*.new" }

// LeftBehind returns the temporary files beside the file at path. They belong to commands that
// were killed or are still running.
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

// escapeMatch escapes a name, so that filepath.Match takes it literally.
func escapeMatch(name string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(name)
}
