package keyfile

import (
	"fmt"
	"os"
	"path/filepath"
)

const maxLinks = 40

// Exposed returns the ways in which other users can read, change or replace a file that holds
// secrets: through its mode, its owner, its folder, or the folder of a link to it. The parameter
// uid is the user that the file is for. All users except uid and root are other users.
func Exposed(path string, uid int) (all []string) {
	if info, err := os.Stat(path); err == nil && modesWork {
		if mode := info.Mode().Perm(); mode&0o026 != 0 {
			all = append(all, fmt.Sprintf("others can read or change the file (mode %04o): chmod 600 it", mode))
		}
		if owner, foreign := ownedByOther(info, uid); foreign {
			all = append(all, fmt.Sprintf("another user (uid %d) owns the file and can change it: chown it", owner))
		}
	}
	for range maxLinks {
		entry, err := os.Lstat(path)
		if err != nil || !modesWork {
			return all
		}
		if why := replaceable(path, entry, uid); why != "" {
			return append(all, why)
		}
		if entry.Mode()&os.ModeSymlink == 0 {
			return all
		}
		target, err := os.Readlink(path)
		if err != nil {
			return all
		}
		if !filepath.IsAbs(target) {
			target = filepath.Dir(path) + string(filepath.Separator) + target // not filepath.Join: it would remove folder/.. from the path, but that folder may be a link
		}
		path = target
	}
	return all
}

// Owner returns the id of the user that owns a file. The result ok is false if the owner is
// not known.
func Owner(path string) (uid int, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return owner(info)
}

// ownedByOther returns the id of a file's owner, and true if this owner is neither uid nor root.
func ownedByOther(info os.FileInfo, uid int) (id int, foreign bool) {
	id, ok := owner(info)
	return id, ok && id != uid && id != 0
}

// replaceable says how other users can replace the file or link at path, or returns "" if
// they cannot. In a sticky folder, only two users can replace the file or link: its owner and
// the owner of the folder.
func replaceable(path string, entry os.FileInfo, uid int) string {
	dir := filepath.Dir(path)
	folder, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	if owner, foreign := ownedByOther(folder, uid); foreign {
		return fmt.Sprintf("another user (uid %d) owns the folder %q and can replace the file: chown the folder", owner, dir)
	}
	if folder.Mode().Perm()&0o022 == 0 {
		return ""
	}
	if folder.Mode()&os.ModeSticky != 0 {
		owner, foreign := ownedByOther(entry, uid)
		if !foreign {
			return ""
		}
		return fmt.Sprintf("another user (uid %d) owns %q and can replace it: chown it", owner, path)
	}
	return fmt.Sprintf("others can replace the file (mode %04o of the folder %q): chmod go-w it", folder.Mode().Perm(), dir)
}
