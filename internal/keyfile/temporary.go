package keyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const fileMode = 0o600

// modeLike returns the mode of a new file that replaces the file that like describes. The
// owner may read and write the new file. The group may read it if the group, but not
// everybody, could read the old file. Nobody else may read it.
func modeLike(like os.FileInfo) os.FileMode {
	if like != nil && like.Mode().Perm()&0o044 == 0o040 {
		return fileMode | 0o040
	}
	return fileMode
}

// writeBeside writes text to a temporary file in the folder of path, and returns the name of
// that file. If like is not nil, the temporary file gets the owner of the file that like
// describes.
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

// synced writes the folder to disk, so that a change in it survives a crash.
func synced(folder *os.File) error {
	if err := ignoreUnsupported(folder.Sync()); err != nil {
		return fmt.Errorf("the file was changed, but that may not survive a crash: %w", cannot("sync its folder", err))
	}
	return nil
}

func temporaryName(path string) string { return "." + filepath.Base(path) + ".*.new" }

// LeftBehind returns the temporary files that commands made to replace the file at path.
// These commands were killed, or are still running.
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
