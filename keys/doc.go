// Package keys provides rings that several processes share.
//
//	source, err := keys.OpenFile("/etc/release/keys", nil)
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: source, Audience: "release.example.com"})
//
// [OpenFile] reads a file that `mcpseal keys` writes, and follows its changes.
// Every key has dates, so a whole fleet rotates by the clock once it has the new
// file. [FromEnvironment], [FromText] and [FromBytes] are for keys that you have
// already, as random bytes, in hex or in base64, and that never change while the
// process runs; [Environment] reads those that `mcpseal keys new --print` makes. A
// server that one client starts for itself needs none: see [mcpseal.Ephemeral].
//
// docs/operations.md describes the file's format and how to rotate.
package keys
