package leaky

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

var hs256 = b64([]byte(`{"alg":"HS256"}`))

// writeState returns the text of a new state, for one question of the target c.run. The parameter
// round is the index of that question.
func (s *Server) writeState(c *call, round int) string {
	q := c.run.questions[round]
	rec := record{Purpose: "state", Target: c.run.id(), Digest: c.digest, User: c.user, ID: rand.Text(),
		Expires: s.Now().Add(lifetime).UnixMilli(), Round: round, Asked: []string{q.key}}
	switch {
	case s.hole("short-mac"):
		payload := strings.TrimPrefix(s.seal(rec), prefix)
		return payload + "." + s.mac(payload)
	case s.hole("alg-none"):
		signed := hs256 + "." + strings.TrimPrefix(s.seal(rec), prefix)
		return signed + "." + s.mac(signed)
	case s.hole("signed-plaintext"), s.hole("hmac-unbound"):
		if s.hole("hmac-unbound") {
			rec = record{Purpose: rec.Purpose, Round: rec.Round, Asked: rec.Asked}
		}
		text, _ := json.Marshal(rec)
		return b64(text) + "." + s.mac(b64(text))
	case s.hole("plaintext"):
		fields := url.Values{"step": {strconv.Itoa(round + 1)}}
		for name, given := range c.read {
			fields.Set(name, given)
		}
		return fields.Encode()
	case s.hole("base64-json"):
		fields := map[string]any{"step": round + 1}
		for name, given := range c.read {
			fields[name] = given
		}
		text, _ := json.Marshal(fields)
		return b64(text)
	}
	return s.seal(rec)
}

// readState returns the record in a text that writeState wrote. If the text is not accepted, the
// second result says why. Otherwise it is "".
func (s *Server) readState(c *call, text string) (rec record, reason string) {
	switch {
	case s.hole("short-mac"):
		payload, tag, _ := strings.Cut(text, ".")
		if !strings.HasPrefix(s.mac(payload), tag) {
			return record{}, "tag"
		}
		return s.unseal(prefix+payload, "state")
	case s.hole("alg-none"):
		parts := strings.Split(text, ".")
		if len(parts) != 3 {
			return record{}, "malformed"
		}
		var header struct{ Alg string }
		decoded, err := base64.RawURLEncoding.DecodeString(parts[0])
		none := err == nil && json.Unmarshal(decoded, &header) == nil && strings.EqualFold(header.Alg, "none")
		if (!none || parts[2] != "") && (parts[0] != hs256 || !s.macFits(parts[0]+"."+parts[1], parts[2])) {
			return record{}, "signature"
		}
		return s.unseal(prefix+parts[1], "state")
	case s.hole("signed-plaintext"), s.hole("hmac-unbound"):
		payload, tag, _ := strings.Cut(text, ".")
		decoded, err := base64.RawURLEncoding.DecodeString(payload)
		if !s.macFits(payload, tag) || err != nil || json.Unmarshal(decoded, &rec) != nil {
			return record{}, "signature"
		}
		return rec, ""
	case s.hole("plaintext"):
		fields, _ := url.ParseQuery(text)
		rec := c.run.trusted()
		for name := range fields {
			rec.setField(name, fields.Get(name))
		}
		return rec, ""
	case s.hole("base64-json"):
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || depth(decoded) > maxDepth {
			return record{}, "base64"
		}
		fields, err := parse(string(decoded))
		if err != nil || fields.kind != '{' {
			return record{}, "JSON"
		}
		rec := c.run.trusted()
		for _, m := range fields.members {
			rec.setField(m.name, m.text)
		}
		return rec, ""
	}
	return s.unseal(text, "state")
}

// setField stores a field in the record. The field comes from a state that is not sealed.
func (rec *record) setField(name, text string) {
	if name == "step" {
		step, _ := strconv.Atoi(text)
		rec.Round = step - 1
		return
	}
	if rec.args == nil {
		rec.args = map[string]string{}
	}
	rec.args[name] = text
}
