package leaky

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// record is what a state or a cursor says.
type record struct {
	Purpose string            `json:"purpose"`          // "state" or "cursor"
	Target  string            `json:"target,omitempty"` // the method and what it names
	Digest  string            `json:"digest,omitempty"` // of the arguments
	User    string            `json:"user,omitempty"`
	Expires int64             `json:"expires,omitempty"` // Unix milliseconds
	ID      string            `json:"id,omitempty"`      // for single use
	Round   int               `json:"round"`             // which question of the target was asked
	Asked   map[string]string `json:"asked,omitempty"`   // the kinds of the questions, by key
	Offset  int               `json:"offset,omitempty"`  // of a cursor

	args map[string]string // overrides the arguments; only in a state that is not sealed
}

const (
	prefix      = "s1."
	recordSize  = 384 // every record is padded to this size, so all tokens are equally long
	overhead    = 12 + 16
	tokenLength = len(prefix) + ((recordSize+overhead)*8+5)/6
)

// seal encrypts a record, and authenticates it with the prefix.
func (s *Server) seal(rec record) string {
	text, _ := json.Marshal(rec) // cannot fail: strings, numbers and a map of strings
	text = append(text, bytes.Repeat([]byte(" "), max(0, recordSize-len(text)))...)
	nonce := make([]byte, 12, overhead+len(text))
	rand.Read(nonce)
	return prefix + b64(s.aead.Seal(nonce, nonce, text, []byte(prefix)))
}

// unseal opens the token of a state or a cursor. It says why it fails.
func (s *Server) unseal(token, purpose string) (rec record, why string) {
	state, cursor := purpose == "state", purpose == "cursor"
	if state && s.hole("suffix-ignored") {
		token = token[:min(len(token), tokenLength)]
	}
	if state && s.hole("lenient-base64") {
		token = canonical64(token)
	}
	if len(token) < len(prefix) {
		return record{}, "malformed"
	}
	if token[:len(prefix)] != prefix {
		if !(state && s.hole("unsigned-prefix")) && !(cursor && s.hole("cursor-prefix")) {
			return record{}, "prefix"
		}
	}
	sealed, err := base64.RawURLEncoding.DecodeString(token[len(prefix):])
	if err != nil || b64(sealed) != token[len(prefix):] { // DecodeString takes other spellings
		return record{}, "base64"
	}
	if len(sealed) < overhead {
		return record{}, "length"
	}
	text, err := s.aead.Open(nil, sealed[:12], sealed[12:], []byte(prefix))
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

// canonical64 returns the one spelling of a token that unseal accepts, if there is one.
func canonical64(token string) string {
	token = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '=':
			return -1
		case r == '+':
			return '-'
		case r == '/':
			return '_'
		}
		return r
	}, token)
	if head, body, found := strings.Cut(token, "."); found {
		if data, err := base64.RawURLEncoding.DecodeString(body); err == nil {
			return head + "." + b64(data)
		}
	}
	return token
}

var hs256 = b64([]byte(`{"alg":"HS256"}`))

// writeState returns the text of a new state: it asks question round of c.run.
func (s *Server) writeState(c *call, round int) string {
	q := c.run.questions[round]
	rec := record{Purpose: "state", Target: c.run.id(), Digest: c.digest, User: c.user, ID: rand.Text(),
		Expires: s.now().Add(s.ttl()).UnixMilli(), Round: round, Asked: map[string]string{q.key: q.kind}}
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
		text := "step=" + strconv.Itoa(round+1)
		for _, p := range c.run.params {
			if given, ok := c.read[p.name]; ok {
				text += "&" + p.name + "=" + url.QueryEscape(given)
			}
		}
		return text
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

// readState returns the record of a text that writeState wrote. It says why it fails.
func (s *Server) readState(c *call, text string) (rec record, why string) {
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
		none := err == nil && json.Unmarshal(decoded, &header) == nil && strings.EqualFold(header.Alg, "none") && parts[2] == ""
		if !none && (parts[0] != hs256 || !s.macFits(parts[0]+"."+parts[1], parts[2])) {
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
			rec.set(name, fields.Get(name))
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
			rec.set(m.name, m.text)
		}
		return rec, ""
	}
	return s.unseal(text, "state")
}

// set takes one field of a state that is not sealed.
func (rec *record) set(name, text string) {
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

// openState checks the state of a call, all but single use. ok reports whether the call
// has a state, so that its answers count.
func (s *Server) openState(c *call) (rec record, ok bool, f *fault) {
	state := c.state
	if s.hole("coerced-types") {
		if state.kind == '[' && len(state.items) == 1 && state.items[0].isString() {
			state = state.items[0]
		}
		if state.kind == '{' && len(state.members) == 1 && state.members[0].isString() {
			state = state.members[0].value
		}
	}
	if c.unchecked && state.kind != 0 {
		return c.run.trusted(), true, nil
	}
	if s.hole("empty-unchecked") && state.isString() && state.text == "" {
		return c.run.trusted(), true, nil
	}
	if s.hole("debug-state") && state.isString() && slices.Contains([]string{"test", "debug", "{}", "0", "admin", "AAAA"}, state.text) {
		return c.run.trusted(), true, nil
	}
	if state.kind == 0 {
		if s.hole("stripping") && len(c.answers.members) > 0 {
			return c.run.trusted(), true, nil
		}
		if s.hole("case-blind") && c.params.misspelt("requestState").kind != 0 {
			return c.run.trusted(), true, nil
		}
		return record{}, false, nil
	}
	if !state.isString() || state.text == "" {
		return record{}, false, s.rejected(state, "type")
	}
	rec, why := s.readState(c, state.text)
	if why == "" && !s.hole("plaintext") && !s.hole("base64-json") && !s.hole("hmac-unbound") {
		if rec.Purpose == "cursor" && s.hole("one-token") && rec.User == c.user && !s.expired(rec) {
			return c.run.trusted(), true, nil
		}
		why = s.bound(c, rec)
	}
	if why != "" {
		return record{}, false, s.rejected(state, why)
	}
	return rec, true, nil
}

// bound checks that a genuine record was made for this call. It says why not.
func (s *Server) bound(c *call, rec record) (why string) {
	if rec.Purpose != "state" {
		return "purpose"
	}
	if !s.hole("shared-tools") && rec.Target != c.checked.id() {
		return "target"
	}
	if !s.hole("unbound-arguments") && rec.Digest != c.digest {
		return "arguments"
	}
	if !s.hole("shared-users") && rec.User != c.user {
		return "user"
	}
	if s.expired(rec) {
		return "expired"
	}
	return ""
}

func (s *Server) expired(rec record) bool {
	if rec.Purpose == "state" && s.hole("no-expiry") {
		return false
	}
	return s.now().UnixMilli() >= rec.Expires
}

// spend uses a state up. The caller runs done after the handler.
func (s *Server) spend(c *call, rec record) (done func(), f *fault) {
	done = func() {}
	if rec.ID == "" || s.hole("reusable") { // a record without an id was not checked at all
		return done, nil
	}
	if s.hole("use-by-answer") {
		rec.ID += c.answers.canonical(exact)
	}
	if s.hole("racy-use") {
		if s.used.has(rec.ID) {
			return nil, s.rejected(c.state, "used")
		}
		return func() { s.pause(); s.used.add(rec, s.expired) }, nil
	}
	if !s.used.add(rec, s.expired) {
		return nil, s.rejected(c.state, "used")
	}
	return done, nil
}

// rejected returns the error for a state. It is always the same.
func (s *Server) rejected(state value, why string) *fault {
	f := &fault{code: codeParams, message: "Invalid or expired requestState"}
	if s.hole("oracle") {
		f.message += ": " + why
	}
	if s.hole("echo") {
		f.data = map[string]any{"requestState": cmp.Or(state.text, state.raw)}
	}
	return f
}

// digest returns the digest of the arguments that a state is bound to.
func (s *Server) digest(t *target, args value) string {
	if s.hole("raw-digest") {
		return sum(args.raw)
	}
	if s.hole("floats") {
		return sum(args.canonical(func(number string) string {
			f, _ := strconv.ParseFloat(number, 64)
			return strconv.FormatFloat(f, 'g', -1, 64)
		}))
	}
	if s.hole("folded-arguments") {
		return sum(strings.Map(foldRune, args.canonical(exact)))
	}
	if s.hole("case-blind") {
		args.members = slices.DeleteFunc(slices.Clone(args.members), func(m member) bool {
			return slices.ContainsFunc(t.params, func(p param) bool {
				return p.name != m.name && strings.EqualFold(p.name, m.name)
			})
		})
	}
	return sum(args.canonical(exact))
}

// foldRune returns the same rune for letters that differ only in case or width.
func foldRune(r rune) rune {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // full width
		r -= 0xfee0
	case r == 0x17f: // long s
		r = 's'
	}
	return unicode.ToLower(r) // which also makes the Kelvin sign a k
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return b64(digest[:])
}

// uses remembers the states that were used, until they expire.
type uses struct {
	mu      sync.Mutex
	records map[string]record
	sweepAt int
}

func (u *uses) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, used := u.records[id]
	return used
}

// add reports whether the state was not used before.
func (u *uses) add(rec record, expired func(record) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, used := u.records[rec.ID]; used || expired(rec) { // a use may be forgotten once it expired
		return false
	}
	if u.records == nil {
		u.records = map[string]record{}
	}
	u.records[rec.ID] = record{Purpose: rec.Purpose, Expires: rec.Expires}
	if len(u.records) > u.sweepAt {
		for id, old := range u.records {
			if expired(old) {
				delete(u.records, id)
			}
		}
		u.sweepAt = 2*len(u.records) + 100
	}
	return true
}
