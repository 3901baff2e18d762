package exactjson

import (
	"bytes"

	"github.com/tripseal/tripseal/internal/argdigest"
)

// Same reports whether two JSON texts mean the same: if they do, a token or cursor that is
// bound to one of them is also bound to the other. An empty text and null mean the
// same as {}. Same always returns true for two identical texts. Otherwise it returns false
// if one of the texts has no digest, for example because it has two members with the same
// name. Use Same to find out whether other code has changed arguments.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, err := argdigest.Sum(a)
	other, otherErr := argdigest.Sum(b)
	return err == nil && otherErr == nil && one == other
}
