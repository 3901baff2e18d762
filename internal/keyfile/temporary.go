package keyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const fileMode = 0o600

// modeLike returns the mode of a file that replaces like. Its group may read it if
// the group, but not everybody, could read like. Nobody else may.
func modeLike(like os.FileInfo) os.FileMode {
	if like != nil && like.Mode().Perm()&0o044 == 0o040 {
		return fileMode | 0o040
	}
	return fileMode
}

// writeBeside writes a temporary file in the same folder. If like is not nil, the
// file gets the owner of like.
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

// synced makes a change in the folder survive a crash.
func synced(folder *os.File) error {
	if err := ignoreUnsupported(folder.Sync()); err != nil {
		return fmt.Errorf("the file was changed, but that may not survive a crash: %w", cannot("sync its folder", err))
	}
	return nil
}

func temporaryName(path string) string { return "." + filepath.Base(path) + ".*.new" }

// LeftBehind returns temporary files of commands that were killed or still run.
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

// escapeMatch escapes a name for filepath.Match.
func escapeMatch(name string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(name)
}
