package inspectcmd

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/internal/b64u"
)

// addForeign adds to the report what it finds out about a token of another implementation. It
// may name two implementations, because some write the same prefix.
func (r *report) addForeign(token string) error {
	parts := strings.Split(token, ".")
	switch {
	case len(parts) == 3 && parts[0] == "v1" && r.addSigned(parts[1]):
		return nil
	case len(parts) == 2 && (parts[0] == "v1" || parts[0] == "v1e"):
		raw, err := b64u.Decode(nil, parts[1])
		if err != nil || len(raw) < 12+16 {
			break
		}
		readable, id := "its holder can read the length, nothing else", hex.EncodeToString(raw[:4])
		if parts[0] == "v1e" {
			r.add("format", "format", "mcp.d, encrypted (v1e.)", "mcp.d encrypted")
		} else {
			r.add("format", "format", "AES-GCM of the Python SDK or of the Ruby SDK (v1.)", "python or ruby")
			r.add("", "python_key", "", id)
			readable = "its holder can read the length, and of the Python SDK's the key's id: " + id
		}
		r.add("length", "length", fmt.Sprintf("%d characters", len(token)), len(token))
		r.add("readable", "readable", readable, []string{"length"})
		return nil
	case len(parts) == 1 && r.addATD(token):
		return nil
	}
	return r.addUnknown(token)
}

// addSigned adds to the report what it finds out about a token that is signed but not encrypted.
// It returns false if the given text is not the body of such a token.
func (r *report) addSigned(body string) bool {
	raw, err := b64u.Decode(nil, body)
	if err != nil {
		return false
	}
	var claims map[string]json.RawMessage
	if json.Unmarshal(raw, &claims) != nil {
		return false
	}
	name, short := "TypeScript SDK, signed (v1.)", "typescript"
	switch {
	case claims["p"] != nil && claims["exp"] != nil:
	case claims["s"] != nil && claims["exp"] != nil:
		name, short = "mcp.d, signed (v1.)", "mcp.d signed"
	default:
		return false
	}
	r.add("format", "format", name, short)
	r.add("readable", "readable", "its holder can read everything: "+cli.Quoted(string(raw)), []string{"everything"})
	r.add("", "claims", "", claims)
	var exp int64
	if json.Unmarshal(claims["exp"], &exp) == nil && 0 < exp && exp < 1<<40 {
		r.time("expires", "expires", exp*1000)
	}
	return true
}

// addATD adds to the report what it finds out about a cursor of the ATD runtime. Such a cursor is
// CBOR with a signature. If the token is no such cursor, addATD returns false.
func (r *report) addATD(token string) bool {
	raw, err := b64u.Decode(nil, token)
	if err != nil || len(raw) <= 32 {
		return false
	}
	var body struct {
		Tool   string `cbor:"tool_id"`
		Caller string `cbor:"caller_id"`
		Page   uint64 `cbor:"page_index"`
		Issued uint64 `cbor:"issued_at_unix"`
		State  []byte `cbor:"opaque_state"`
	}
	if cbor.Unmarshal(raw[:len(raw)-32], &body) != nil || body.Tool == "" {
		return false
	}
	r.add("format", "format", "ATD cursor, signed", "atd cursor")
	r.add("readable", "readable", "its holder can read everything", []string{"everything"})
	r.add("tool", "tool", cli.Quoted(body.Tool), body.Tool)
	r.add("caller", "caller", cli.Quoted(body.Caller), body.Caller)
	r.add("page", "page", fmt.Sprint(body.Page), body.Page)
	if body.Issued < 1<<40 {
		r.time("issued", "issued", int64(body.Issued)*1000)
	}
	r.add("position", "position", fmt.Sprintf("%s: %s", cli.Count(len(body.State), "byte"), cli.Quoted(string(body.State))), body.State)
	return true
}

// addUnknown adds to the report that the token has an unknown format, and always returns an
// error.
func (r *report) addUnknown(token string) error {
	r.add("format", "format", "unknown", "unknown")
	r.add("length", "length", fmt.Sprintf("%d characters", len(token)), len(token))
	r.add("", "reason", "", string(tripseal.ReasonMalformed))
	if prefix, rest, ok := strings.Cut(token, "."); ok && prefix != "v1" && prefix != "v1e" && len(prefix) <= 16 && rest != "" && strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
		r.add("prefix", "prefix", prefix+". is none that this command knows; a codec of your own has its own", prefix+".")
		return cli.No("the format is unknown")
	}
	r.add("readable", "readable", "not a token that is known: its holder can read it, and change it", []string{"everything"})
	return cli.No("this is not a sealed token")
}
