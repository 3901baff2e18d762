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
// The other functions read keys that never change while the process runs: [Environment],
// [FromEnvironment], [FromText] and [FromBytes]. Such a key is 32 random bytes. As a text it has
// an [Encoding]:
//
//	keys.Tripseal   tripseal_key1_…, as `tripseal keys new --print` and tripseal.Key.Reveal write it
//	keys.Hex        openssl rand -hex 32
//	keys.Base64     openssl rand -base64 32
//	keys.Base64URL  the same with - and _
//
// No encoding makes a key of a pass phrase: the base64 of one is refused. In tests, sealtest.Keys
// makes a ring from any text.
//
// You do not need this package for a server that a client starts for itself alone: see
// [tripseal.Ephemeral].
//
// docs/operations.md describes the file's format and how to rotate keys.
package keys
