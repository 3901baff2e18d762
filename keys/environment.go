package keys

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tripseal/tripseal"
)

// Variable is the environment variable that [Environment] reads.
const Variable = "TRIPSEAL_KEYS"

// Environment returns a ring of the keys in the environment variable TRIPSEAL_KEYS. It is
// short for FromEnvironment(Variable, Tripseal). Use it for a service whose keys come from
// `tripseal keys new --print`.
func Environment() (*tripseal.Ring, error) { return FromEnvironment(Variable, Tripseal) }

// FromEnvironment returns a ring of the keys in the environment variable with this name. The
// value of the variable has the form that [FromText] describes. FromEnvironment returns an
// error if the variable is empty or not set.
//
// Prefer [OpenFile]. A process passes its environment on to every process that it starts, and
// keys in the environment change only when the process restarts.
func FromEnvironment(name string, encoding Encoding) (*tripseal.Ring, error) {
	value, set := os.LookupEnv(name)
	if !set && name != Variable { // name may be a key that was passed by mistake
		return nil, errors.New("keys: no environment variable has the given name: give the name, not the value")
	}
	return ringOf(value, encoding, name)
}

// FromText returns a ring of the keys in a text, separated by white space. Each is 32 random bytes
// in the encoding that you name: [Hex], [Base64], [Base64URL] or [Tripseal]. The first key seals
// tokens, and all keys open tokens. An error names the position of a bad key, and never contains
// the key itself. FromText refuses pass phrases: for a test, use sealtest.Keys.
//
// To replace a key, take three steps. Finish each step on every replica before you begin the
// next. First, add the new key after the old one. Then move the new key to the front. Drop the
// old key when its last token or cursor has expired.
func FromText(text string, encoding Encoding) (*tripseal.Ring, error) {
	return ringOf(text, encoding, "the text")
}

// FromBytes returns a ring of keys. Each secret is 32 random bytes, as for [tripseal.NewKey].
// The first key seals tokens, and all keys open tokens. [FromText] says how to replace a
// key. Use FromBytes for secrets that your program gets from a secret manager.
func FromBytes(secrets ...[]byte) (*tripseal.Ring, error) {
	all := make([]tripseal.Key, len(secrets))
	for i, secret := range secrets {
		key, err := tripseal.NewKey(secret)
		if err != nil {
			return nil, fmt.Errorf("keys: secret %d: %w", i+1, withoutPackage(err))
		}
		all[i] = key
	}
	return tripseal.NewRing(all...)
}

// ringOf returns a ring of the keys in a text, which error messages call textName.
func ringOf(text string, encoding Encoding, textName string) (*tripseal.Ring, error) {
	if !encoding.valid() {
		return nil, errors.New("keys: say how the keys are encoded: keys.Tripseal, keys.Hex, keys.Base64 or keys.Base64URL")
	}
	texts := strings.Fields(text)
	if len(texts) == 0 {
		return nil, fmt.Errorf("keys: %s is empty or not set; set it to keys separated by spaces, "+
			"the first of which seals; make one with %s", textName, encodings[encoding].makes)
	}
	all := make([]tripseal.Key, len(texts))
	for i, text := range texts {
		key, err := encoding.decodeKey(text)
		if err != nil {
			return nil, fmt.Errorf("keys: key %d in %s is %w", i+1, textName, err)
		}
		all[i] = key
	}
	return tripseal.NewRing(all...)
}
