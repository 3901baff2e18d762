package keys

import "context"

// Unwrapper decrypts secrets that a key service, or age, encrypted. It is called
// when a file is loaded, once for each secret that is new in it, and never for a
// token. An error and a panic mean that the file cannot be loaded; it is then
// tried again, ever less often, until the file changes.
//
// What is encrypted is the text of a key, mcpseal_key1_…; in the file it stands
// as secret=SCHEME:BASE64. The package keys/agekeys is one implementation; the
// suite sealtest.TestUnwrapper holds others to the contract.
//
// An unwrapper may have a method Files() []string that names the files with its
// own secrets: the log warns if others can reach them, as for the file of keys.
type Unwrapper interface {
	// Scheme names what wraps the secrets: up to 32 lower-case letters, digits
	// and hyphens.
	Scheme() string
	// Unwrap returns what was encrypted, or an error for any bytes that were
	// not encrypted as they are. It honours the context, which ends after 30
	// seconds; what does not come back by then has failed. The bytes it returns
	// are copied.
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
}
