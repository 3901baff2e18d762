package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// drive simulates the service that stores the files. The bearer tokens are for this
// service. No other service knows which user a token belongs to.
type drive struct {
	mu    sync.Mutex
	files map[string]string // from a path such as "alice/photo.jpg" to the content of the file
}

func newDrive() *drive {
	d := new(drive)
	d.reset()
	return d
}

func (d *drive) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = make(map[string]string)
	for _, folder := range []string{"alice", "bob"} {
		d.files[folder+"/report.txt"] = "the report of " + folder
		d.files[folder+"/photo.jpg"] = "a photo of " + folder
	}
}

// folderOf returns the folder of the user who sent this Authorization header, or "" if no
// user has this token.
func (d *drive) folderOf(authorization string) string {
	return map[string]string{"Bearer token-of-alice": "alice", "Bearer token-of-bob": "bob"}[authorization]
}

// usersOnly refuses requests with unknown bearer tokens, as a gateway would do. Without this
// check, a client could invent any number of tokens and be a new user with each of them.
func (d *drive) usersOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.folderOf(r.Header.Get("Authorization")) == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (d *drive) remove(folder, path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, found := d.files[folder+"/"+path]
	delete(d.files, folder+"/"+path)
	return found
}

func (d *drive) archive(folder, path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	content, found := d.files[folder+"/"+path]
	if found {
		delete(d.files, folder+"/"+path)
		d.files[folder+"/archive/"+path] = content
	}
	return found
}

// String returns the names of all files.
func (d *drive) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(d.files)), ", ")
}
