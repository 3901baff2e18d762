// Package whose tells a state of package elicit from every other state, on its way from a handler to the boundary.
//
// Between the two there is an SDK, which knows a state only as a text. Any text can look like a state of package
// elicit: a handler may keep a client's text as its state. So package elicit signs its state, with a secret that never
// leaves the process, and the boundary removes the signature when it seals the state. No client ever sees a signature.
package whose

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
)

// Mark begins every signed state. It also begins a state of package elicit in a token whose format cannot say whose
// state it holds.
const Mark = "com.github.tripseal/elicit "

var secret = []byte(rand.Text() + rand.Text())

var signatureSize = base64.RawURLEncoding.EncodedLen(sha256.Size)

// Sign returns the text that stands for a state of package elicit until the boundary seals it.
func Sign(state string) string { return Mark + signatureOf(state) + state }

// Verify returns the state that was signed in this process. For any other text, ok is false.
func Verify(text string) (state string, ok bool) {
	rest, ok := strings.CutPrefix(text, Mark)
	if !ok || len(rest) < signatureSize {
		return "", false
	}
	state = rest[signatureSize:]
	if !hmac.Equal([]byte(rest[:signatureSize]), []byte(signatureOf(state))) {
		return "", false
	}
	return state, true
}

func signatureOf(state string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(state))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// MarkName is the member of a call's _meta that holds the mark of the call over standard input and output: see package
// wire.
const MarkName = "com.github.tripseal/call"

// Arrivals maps the mark of a call to its *elicit.Arrival, until the call is answered.
var Arrivals sync.Map
