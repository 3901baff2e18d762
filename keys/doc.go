// Package keys is where rings come from when several processes share them.
//
//	source, err := keys.OpenFile("/etc/release/keys", nil)
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: source, Audience: "release.example.com"})
//
// [OpenFile] reads a file that `mcpseal keys` writes, and follows it: every key
// has dates, so that one distribution of the file rotates the keys of a whole
// fleet by the clock. [Environment] is for keys that never change while the
// process runs. A server that one client starts for itself needs neither: see
// [mcpseal.Ephemeral].
//
// docs/operations.md has the file's format, and how to rotate.
package keys
