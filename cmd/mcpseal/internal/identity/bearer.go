package identity

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxToken is the longest token that is read.
	maxToken = 16 << 10
	// maxHeader is the longest first part of a token. It is parsed before anybody is known,
	// and a hostile one costs much more time than a verification.
	maxHeader = 2 << 10
)

// bearer returns the token in the values of the header Authorization. It has three parts
// of base64url, as a signed JSON Web Token in its compact form does.
func bearer(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", errors.New("the header Authorization is missing")
	case len(values) > 1:
		return "", errors.New("the header Authorization is there more than once")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", errors.New("the header Authorization has another scheme than Bearer")
	case len(token) > maxToken:
		return "", fmt.Errorf("the token has more than %d bytes", maxToken)
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 {
		return "", errors.New("the token is not a signed JSON Web Token; opaque tokens need the identity header")
	}
	if len(parts[0]) > maxHeader {
		return "", fmt.Errorf("the token's header has more than %d bytes", maxHeader)
	}
	for _, part := range parts {
		if part == "" || strings.ContainsFunc(part, isNotBase64) {
			return "", errors.New("the token is not three parts of base64url")
		}
	}
	return token, nil
}

func isNotBase64(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
