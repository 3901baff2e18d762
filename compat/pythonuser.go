package compat

import (
	"crypto/sha256"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
	"github.com/tripseal/tripseal/internal/strictjson"
)

const errNoClient = tripseal.PlainError("the access token names no client, but the Python SDK makes the client a part of a user's name: " +
	"have the TokenVerifier set TokenInfo.Extra[\"client_id\"]")

// PythonUser returns the name that the Python SDK gives a user, from the parts of a verified
// access token. Pass "" for an issuer or a subject that the token does not have. The
// client ID is required, because every access token in the Python SDK has one. Also, if all
// three parts could be empty, different users could have the same name. Call PythonUser in
// your function gosdk.Options.Principal or wire.Options.User, if your Go server opens
// or seals tokens of Python servers.
func PythonUser(clientID, issuer, subject string) (string, error) {
	if clientID == "" {
		return "", errNoClient
	}
	text := []byte{'['}
	for i, part := range []string{clientID, issuer, subject} {
		if i > 0 {
			text = append(text, ',')
		}
		if part == "" {
			text = append(text, "null"...)
			continue
		}
		var ok bool
		if text, ok = strictjson.AppendString(text, part, &pythonStrings); !ok {
			return "", errName
		}
	}
	return string(append(text, ']')), nil
}

// pythonUser returns the claim that binds a token to a user: the salt and a salted digest of
// the name.
func pythonUser(user string, salt []byte) string {
	digest := pythonUserDigest(user, salt)
	return string(b64u.Append(nil, append(append([]byte(nil), salt...), digest[:]...)))
}

func pythonUserDigest(user string, salt []byte) [pythonDigestSize]byte {
	buf := append(make([]byte, 0, 256), pythonUserLabel...)
	sum := sha256.Sum256(append(append(buf, salt...), user...))
	return [pythonDigestSize]byte(sum[:])
}
