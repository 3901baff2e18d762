package mcpseal

import (
	"context"
)

// Request is the request that carries a token, or whose result will.
type Request struct {
	// Method is the protocol's name: tools/call, prompts/get or resources/read.
	Method string
	// Target is the tool's or prompt's name, or the resource's URI.
	Target string
	// Arguments is the JSON text of params.arguments, as it arrived. Nil and null
	// count as {}. With a token, Open digests them and Seal uses that digest. On a
	// first round Seal reads them, so they must not change until then: give Open
	// a copy where a handler can reach these bytes.
	Arguments []byte
	// Principal tells who is calling; nil means nobody. It is called when a
	// token is opened or sealed, once a round, or twice where a token was
	// rejected and [Config.AskAgain] is set.
	Principal Principal
}

// Principal returns the verified identity of the caller: whatever names one
// user for good, at most 4096 bytes, or "" for nobody. An error, a panic and a
// longer text fail the check.
type Principal func(ctx context.Context) (string, error)

// User is a principal that is already known. An empty id fails the check: a
// caller who is authenticated but has no name must not pass for nobody.
func User(id string) Principal {
	return func(context.Context) (string, error) {
		if id == "" {
			return "", errEmptyUser
		}
		return id, nil
	}
}

const errEmptyUser = plainError("the user's id is empty")
