// Package keys loads keys that several processes share.
//
//	source, err := keys.OpenFile("/etc/release/keys", nil)
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: source, Audience: "release.example.com"})
//
// [OpenFile] reads a file that `mcpseal keys` writes, and reloads it when it changes.
// Every key in it has dates, so all replicas that have the new file change keys at the
// same time. [FromEnvironment], [FromText] and [FromBytes] are for keys that you have
// already, as random bytes, in hex or in base64, and that never change while the
// process runs. [Environment] reads keys that `mcpseal keys new --print` made. A
// server that one client starts for itself needs no such keys: see [mcpseal.Ephemeral].
//
// docs/operations.md describes the file's format and how to rotate.
package keys
