package identity

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxToken is the maximum length of a token, in bytes.
	maxToken = 16 << 10
	// maxHeader is the maximum length of the token's first part, its header, in bytes. The
	// header is parsed before the signature is checked, so anybody can send one. A long
	// hostile header would cost much more time than the check of a signature.
	maxHeader = 2 << 10
)

// bearer returns the token in the values of the header Authorization. It returns an error if
// the token does not look like a signed JSON Web Token: three parts in base64url.
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
