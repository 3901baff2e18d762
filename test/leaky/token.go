package leaky

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// record is the content of a state or a cursor.
type record struct {
	Purpose string   `json:"purpose"`          // "state" or "cursor"
	Target  string   `json:"target,omitempty"` // the method, and the name or URI of the target
	Digest  string   `json:"digest,omitempty"` // the digest of the arguments
	User    string   `json:"user,omitempty"`
	Expires int64    `json:"expires,omitempty"` // when it expires, in Unix milliseconds
	ID      string   `json:"id,omitempty"`      // a random id, to notice a second use
	Round   int      `json:"round"`             // the index of the question that was asked last
	Asked   []string `json:"asked,omitempty"`   // the keys of the questions that were asked
	Offset  int      `json:"offset,omitempty"`  // in a cursor, the index at which the page starts

	args map[string]string // replaces arguments of the request; set only for a state that is not sealed
}

const (
	prefix      = "s1."
	recordSize  = 384 // every record is padded to this size, so all tokens are equally long
	overhead    = 12 + 16
	tokenLength = len(prefix) + ((recordSize+overhead)*8+5)/6
)

// seal encrypts a record. The authentication tag covers the record and the prefix.
func (s *Server) seal(rec record) string {
	text, _ := json.Marshal(rec) // cannot fail: the fields are strings, numbers and a map of strings
	text = append(text, bytes.Repeat([]byte(" "), max(0, recordSize-len(text)))...)
	return prefix + b64(s.aead.Seal(nil, nil, text, []byte(prefix)))
}

// unseal opens the token of a state or a cursor. If the token is not accepted, the second result
// says why. Otherwise it is "".
func (s *Server) unseal(token, purpose string) (rec record, reason string) {
	state, cursor := purpose == "state", purpose == "cursor"
	if state && s.hole("suffix-ignored") && len(token) > tokenLength && strings.IndexByte(".-", token[tokenLength]) >= 0 {
		token = token[:tokenLength]
	}
	if state && s.hole("lenient-base64") {
		token = canonical64(token)
	}
	free := state && s.hole("unsigned-prefix") || cursor && s.hole("cursor-prefix")
	if len(token) < len(prefix) || token[:len(prefix)] != prefix && !free {
		return record{}, "prefix"
	}
	sealed, err := base64.RawURLEncoding.DecodeString(token[len(prefix):])
	if err != nil || b64(sealed) != token[len(prefix):] { // DecodeString also accepts other spellings
		return record{}, "base64"
	}
	text, err := s.aead.Open(nil, nil, sealed, []byte(prefix))
	if err != nil || json.Unmarshal(text, &rec) != nil {
		return record{}, "not genuine"
	}
	return rec, ""
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func (s *Server) mac(text string) string {
	h := hmac.New(sha256.New, s.macKey[:])
	h.Write([]byte(text))
	return b64(h.Sum(nil))
}

func (s *Server) macFits(text, tag string) bool { return hmac.Equal([]byte(s.mac(text)), []byte(tag)) }

// canonical64 converts a token to the only spelling that unseal accepts, if it can.
func canonical64(token string) string {
	token = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "=", "", "+", "-", "/", "_").Replace(token)
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, prefix))
	if err != nil || !strings.HasPrefix(token, prefix) {
		return token
	}
	return prefix + b64(data)
}
