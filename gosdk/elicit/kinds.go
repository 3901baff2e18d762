package elicit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Consent is the answer to a question that asks the user to open a URL. [URL] returns it.
type Consent struct{ *Answer[struct{}] }

// URL asks the user to open a URL, for example to sign in, to pay, or to enter something
// that must not pass through the client. An accepted answer only means that the user
// agreed to open the URL. So after the answer, check whether the user has finished at
// the URL. If not, return the error of [Consent.NotYet].
//
// Someone who did not call the tool might open the URL. Put an id made with [Once] into
// the URL, and store on your server which user the id is for. When the page is opened,
// check that this user is signed in.
func URL(ask *Asker, key, message, url string) *Consent {
	question := &mcp.ElicitParams{Mode: "url", Message: message, URL: url, ElicitationID: ask.elicitationID(key, url)}
	return &Consent{newAnswer(ask, key, question, func([]byte, bool) (consent struct{}, kept []byte, err error) { return })}
}

// elicitationID returns the id of a question about a URL. The id is the same in every
// round, unless the URL changes.
func (a *Asker) elicitationID(key, url string) string {
	if a.state.Seed == "" {
		a.state.Seed = rand.Text()
	}
	var text []byte
	for _, part := range []string{a.state.Seed, key, url} {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// NotYet drops the consent, so that the call asks the user to open the URL again. NotYet
// also drops the answers that came after the consent, and the call asks for them again.
// The call fails if [Once] computed a value after the handler had read the consent. The
// handler must return the error that NotYet returns. Call NotYet if the user agreed but
// has not finished at the URL.
func (c *Consent) NotYet() error { return c.askAgain() }

// Sample asks the client's model for a message. The protocol has deprecated sampling:
// prefer calling a model yourself. Use Sample only while your clients support it.
func Sample(ask *Asker, key string, params *mcp.CreateMessageParams) *Answer[*mcp.CreateMessageWithToolsResult] {
	return newAnswer(ask, key, params, readInto[mcp.CreateMessageWithToolsResult])
}

// SampleWithTools is [Sample] with tools for the model. The call fails if the client has
// not declared that its model can use tools. Use it only if the model must call tools to
// write its message.
func SampleWithTools(ask *Asker, key string, params *mcp.CreateMessageWithToolsParams) *Answer[*mcp.CreateMessageWithToolsResult] {
	return newAnswer(ask, key, params, readInto[mcp.CreateMessageWithToolsResult])
}

// Roots asks for the client's roots. The protocol has deprecated roots: prefer an
// argument of the tool. Use Roots only while your clients support it.
func Roots(ask *Asker, key string) *Answer[[]*mcp.Root] {
	return newAnswer(ask, key, &mcp.ListRootsParams{}, func(content []byte, fresh bool) ([]*mcp.Root, []byte, error) {
		result, kept, err := readInto[mcp.ListRootsResult](content, fresh)
		if err == nil && slices.Contains(result.Roots, nil) {
			err = errors.New("a root is null")
		}
		return result.Roots, kept, err
	})
}

func readInto[T any](content []byte, _ bool) (*T, []byte, error) {
	value := new(T)
	return value, content, json.Unmarshal(content, value)
}
