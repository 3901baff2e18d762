package leaky

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// openState checks the state of a call, except whether it was used before. ok is true if the
// call has an accepted state, so that its answers count.
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
	leftOver := []string{"test", "debug", "{}", "0", "admin", "AAAA"}
	if s.hole("debug-state") && state.isString() && slices.Contains(leftOver, state.text) {
		return c.run.trusted(), true, nil
	}
	if state.kind == 0 {
		ok = s.hole("stripping") && len(c.answers.members) > 0 ||
			s.hole("case-blind") && c.params.misspelt("requestState").kind != 0
		return c.run.trusted(), ok, nil
	}
	if !state.isString() || state.text == "" {
		return record{}, false, s.rejected(state, "type")
	}
	rec, why := s.readState(c, state.text)
	if why == "" && !s.hole("plaintext") && !s.hole("base64-json") && !s.hole("hmac-unbound") {
		if rec.Purpose == "cursor" && s.hole("one-token") && rec.User == c.user && !s.expired(rec) {
			return c.run.trusted(), true, nil
		}
		why = s.checkBinding(c, rec)
	}
	if why != "" {
		return record{}, false, s.rejected(state, why)
	}
	return rec, true, nil
}

// checkBinding checks that a genuine record was made for this call. It returns "" if so, and
// otherwise what is wrong.
func (s *Server) checkBinding(c *call, rec record) (reason string) {
	if rec.Purpose != "state" {
		return "purpose"
	}
	if !s.hole("shared-tools") && rec.Target != c.checked.id() {
		return "target"
	}
	fits := rec.Digest == c.digest || s.hole("subset-arguments") && subset(c.digest, rec.Digest)
	if !s.hole("unbound-arguments") && !fits {
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
	return s.Now().UnixMilli() >= rec.Expires
}

// spend records that a state was used, and returns a fault if it was used before. The caller
// must call the returned function after the handler has run.
func (s *Server) spend(c *call, rec record) (done func(), f *fault) {
	done = func() {}
	if rec.ID == "" || s.hole("reusable") { // a record without an id comes from a state that was not checked
		return done, nil
	}
	if s.hole("use-by-answer") {
		rec.ID += c.answers.canonical(exact)
	}
	var used bool
	if s.hole("racy-use") {
		_, used = s.used.Load(rec.ID)
		done = func() { s.Pause(); s.used.Store(rec.ID, true) }
	} else {
		_, used = s.used.LoadOrStore(rec.ID, true)
	}
	if used {
		return nil, s.rejected(c.state, "used")
	}
	return done, nil
}

// rejected returns the error for a rejected state. On a server without holes, the error is the
// same for all states.
func (s *Server) rejected(state value, why string) *fault {
	f := &fault{Code: codeParams, Message: "Invalid or expired requestState"}
	if s.hole("oracle") {
		f.Message += ": " + why
	}
	if s.hole("echo") {
		f.Data = map[string]any{"requestState": cmp.Or(state.text, state.raw)}
	}
	return f
}

// digest returns the digest of the arguments that a state is bound to.
func (s *Server) digest(t *target, args value) string {
	if s.hole("subset-arguments") {
		parts := []string{}
		for _, m := range args.members {
			parts = append(parts, sum(m.name + ":" + m.value.canonical(exact))[:8])
		}
		slices.Sort(parts)
		return strings.Join(parts, ",")
	}
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

// subset reports whether each part of the first digest is also a part of the second.
func subset(digest, of string) bool {
	all := strings.Split(of, ",")
	for part := range strings.SplitSeq(digest, ",") {
		if part != "" && !slices.Contains(all, part) {
			return false
		}
	}
	return true
}

// foldRune returns the same rune for letters that differ only in case or width.
func foldRune(r rune) rune {
	switch {
	case r >= 0xff01 && r <= 0xff5e: // full width
		r -= 0xfee0
	case r == 0x17f: // long s
		r = 's'
	}
	return unicode.ToLower(r) // also turns the Kelvin sign into k
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return b64(digest[:])
}
