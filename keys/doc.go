// Package keys loads keys that several processes share.
//
//	source, err := keys.OpenFile("/etc/release/keys", nil)
//	…
//	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "release.example.com"})
//
// [OpenFile] reads a file that the command `tripseal keys` writes, and reloads it when it changes.
// Every key in the file has dates, so all replicas that have the new file switch to the next key at
// the same time.
//
// The other functions read keys that never change while the process runs. [FromEnvironment],
// [FromText] and [FromBytes] are for keys that you already have. Such a key consists of 32
// random bytes, which FromEnvironment and FromText read in the encoding that you name: [Hex],
// [Base64] or [Base64URL], or [Tripseal] for keys that `tripseal keys new --print` made.
// [Environment] is short for the last.
//
// A pass phrase is not a key, in no encoding. In tests, sealtest.Keys makes a ring from any text.
//
// You do not need this package for a server that a client starts for itself alone: see
// [tripseal.Ephemeral].
//
// docs/operations.md describes the file's format and how to rotate keys.
package keys
