package elicit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/tripseal/tripseal"
)

// URL asks the user to open a URL, for example to sign in, to pay, or to enter what must not pass through the client.
// An accepted answer only means that the user agreed to open it. So find out then whether the user has finished there,
// and return the error of [Answer.NotYet] if not.
//
// Somebody else may open the URL. Put an id made with [Once] into it, store for which user the id is, and check on the
// page that this user is signed in.
func URL(ask *Asker, key, message, url string) *Answer[struct{}] {
	q := Question{Key: key, Kind: tripseal.KindURL, Message: message, URL: url, ElicitationID: ask.elicitationID(key, url)}
	return newAnswer(ask, q, func(string, bool) (none struct{}, kept string, err error) { return })
}

// elicitationID returns the id of a question about a URL: the same in every round, unless the URL changes.
func (a *Asker) elicitationID(key, url string) string {
	if a.seed == "" {
		a.seed = rand.Text()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{a.seed, key, url}, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Sample asks the client's model for a message. The params are those of a sampling request: a value of your SDK's type,
// or any other that has the same JSON. R is a type that the result fits. The protocol has deprecated sampling: prefer
// to call a model yourself.
func Sample[R any](ask *Asker, key string, params any) *Answer[R] {
	text, err := json.Marshal(params)
	if err != nil || len(text) == 0 || text[0] != '{' || hasNull(string(text)) {
		ask.fail("the params of the question %s are nil or have a nil, or cannot be written as JSON", tripseal.PlainText(key))
		return &Answer[R]{ask: ask, asked: Question{Key: key}}
	}
	q := Question{Key: key, Kind: tripseal.KindSampling, Params: text}
	return newAnswer(ask, q, func(content string, _ bool) (result R, kept string, err error) {
		return result, content, json.Unmarshal([]byte(content), &result)
	})
}

// Root is a folder or file of the client: see [Roots].
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// Roots asks for the client's roots. The protocol has deprecated roots: prefer an argument.
func Roots(ask *Asker, key string) *Answer[[]Root] {
	q := Question{Key: key, Kind: tripseal.KindRoots}
	return newAnswer(ask, q, func(content string, _ bool) ([]Root, string, error) {
		var result struct{ Roots []Root }
		err := json.Unmarshal([]byte(content), &result)
		return result.Roots, content, err
	})
}
