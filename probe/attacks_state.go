package probe

import (
	"fmt"
	"strings"
)

// stateAttacks are the attacks on the text of the state alone.
var stateAttacks = []Attack{
	{
		ID: "changed-character", Title: "One character of the state changed", Severity: High, Section: integrity,
		Means:  "The state is not protected as a whole: a client can change what the server remembers.",
		Fix:    "Seal the state with AEAD or an HMAC over all of it, and compare the tag in constant time.",
		AtMost: tries(maxPositions), Honest: 2, needs: needState, try: changedCharacter,
	},
	{
		ID: "truncated", Title: "The state cut short", Severity: High, Section: integrity,
		Means:  "The server takes a part for the whole, such as a tag that is too short.",
		Fix:    "Require the exact length of the tag, and refuse what does not decode completely.",
		AtMost: tries(26), Honest: 2, needs: needState, try: alter(func(f *flow) (list []variant) {
			cuts := []int{1, 2, 3, 4, 8, 16, 22, 32, 43, 44, 64}
			for i := range len(f.state) {
				if strings.IndexByte(".:-_~|", f.state[i]) >= 0 && len(cuts) < 24 {
					cuts = append(cuts, len(f.state)-i, len(f.state)-i-1)
				}
			}
			for _, n := range append(cuts, len(f.state)/2) {
				if n > 0 && n < len(f.state) {
					list = append(list, withState(fmt.Sprintf("without its last %s", counted(n, "character", "characters")), func(s string) string { return s[:max(0, len(s)-n)] }))
				}
			}
			return list
		}),
	},
	{
		ID: "extended", Title: "Something appended to the state", Severity: Medium, Section: integrity,
		Means:  "The server ignores what follows, so one state has many texts.",
		Fix:    "Refuse a state that is not exactly as long as it says.",
		AtMost: tries(11), Honest: 2, needs: needState, try: alter(func(f *flow) (list []variant) {
			for _, more := range []string{"A", "AAAA", ".", ".AAAA", "-tampered", "tampered", "_x", "\x00", "&x=1", f.state} {
				list = append(list, withState(fmt.Sprintf("with %q after it", clip(more, 12)), func(s string) string { return s + more }))
			}
			return append(list, withState(`with "A" before it`, func(s string) string { return "A" + s }))
		}),
	},
	{
		ID: "respelled", Title: "The same bytes in another spelling", Severity: Low, Section: integrity,
		Means:  "One state has many texts. A store of used states that keeps the text can be evaded.",
		Fix:    "Decode strictly: one alphabet, no padding or always padding, no white space, unused bits zero.",
		AtMost: tries(32), Honest: 2, needs: needState, try: alter(respelled),
	},
	{
		ID: "other-type", Title: "A state that is not a string", Severity: High, Section: integrity,
		Means:  "The server converts other types to text, or skips its check for them.",
		Fix:    "Refuse a requestState that is present and not a string.",
		AtMost: tries(10), Honest: 2, needs: needState, try: alter(func(f *flow) (list []variant) {
			text := quoted(f.state)
			for _, value := range []string{"[" + text + "]", `{"toString":` + text + `}`, `{"value":` + text + `}`, "[[" + text + "]]", "true", "false", "0", "1", "{}", "[]"} {
				list = append(list, variant{"as " + clip(value, 24), func(f *flow) message {
					return f.retry.with("requestState", strings.ReplaceAll(value, text, quoted(f.state)))
				}})
			}
			return list
		}),
	},
	{
		ID: "made-up", Title: "A made-up state", Severity: High, Section: integrity,
		Means:  "The server trusts a state that it never issued.",
		Fix:    "Check every state that is present, and have no values for tests in production.",
		AtMost: tries(17), Honest: 2, needs: needState, try: alter(func(*flow) (list []variant) {
			for _, text := range []string{
				madeUp, "test", "debug", "admin", "{}", "[]", "null", "true", "0", "1", "AAAA", "e30", "e30=", "undefined",
				"eyJhbGciOiJub25lIn0.e30.", strings.Repeat("A", 64), strings.Repeat("0", 32),
			} {
				list = append(list, withState("the text "+quoted(clip(text, 24)), func(string) string { return text }))
			}
			return list
		}),
	},
	{
		ID: "empty", Title: "An empty state", Severity: High, Section: integrity,
		Means:  "The server checks a state only if it is not empty.",
		Fix:    "Tell an empty state from an absent one, and refuse it.",
		AtMost: tries(3), Honest: 2, needs: needState, unsolicited: true, try: emptyState,
	},
	{
		ID: "readable", Title: "Reading the state", Severity: Low, Section: security,
		Means:  "Whoever holds the state reads what the server remembers. The specification allows it; what is in there must not be a secret.",
		Fix:    "Encrypt the state (AEAD), or make sure that nothing in it is private.",
		AtMost: 6, Honest: 1, needs: needState, try: readState,
	},
	{
		ID: "edited", Title: "A state in which one readable value was changed", Severity: High, Section: integrity,
		Means:  "A client writes the server's memory: a price, a step, a decision.",
		Fix:    "Seal the state with AEAD or an HMAC. Of a JWT, allow one algorithm, and never none.",
		AtMost: tries(24), Honest: 2, needs: needState, try: editState,
	},
	{
		ID: "stripped", Title: "Answers without the state", Severity: High, Section: integrity, unsolicited: true,
		Means:  "A client answers questions that it was never asked, with the first call: no state is needed at all.",
		Fix:    "Take answers only with a state that says which questions were asked.",
		AtMost: tries(2), Honest: 2, needs: needState, try: alter(func(*flow) []variant {
			return []variant{
				{"the last answers without the state", func(f *flow) message { return f.retry.without("requestState") }},
				{"the answers of all rounds without the state", func(f *flow) message {
					return f.retry.without("requestState").with("inputResponses", object(f.all))
				}},
			}
		}),
	},
}

// alter returns an attack that sends variants of the honest retry of each target. The server
// must refuse each of them.
func alter(list func(f *flow) []variant) func(*trial) {
	return func(t *trial) { t.eachTarget(list) }
}

// withState returns a variant that replaces the genuine state by the result of the function
// change.
func withState(what string, change func(state string) string) variant {
	return variant{what, func(f *flow) message { return f.retry.with("requestState", quoted(change(f.state))) }}
}

// emptyState sends a state that is "" or null.
func emptyState(t *trial) {
	t.eachTarget(func(f *flow) []variant {
		list := []variant{withState(`"requestState": ""`, func(string) string { return "" })}
		// If the server accepts answers without a state, null is only another way to send no state.
		if !t.through(f, t.send(f.retry.without("requestState")).reply) {
			list = append(list, variant{`"requestState": null`, func(f *flow) message { return f.retry.with("requestState", "null") }})
		}
		return list
	})
}

// editState changes the readable values of a state.
func editState(t *trial) {
	t.eachTarget(func(f *flow) (list []variant) {
		for _, e := range edits(f.state) {
			list = append(list, withState(e.what, func(s string) string {
				for _, again := range edits(s) {
					if again.what == e.what {
						return again.text
					}
				}
				return madeUp
			}))
		}
		return list
	})
	if len(t.result.Outcomes) == 0 {
		t.skip("nothing in the state can be read, changed and written back")
	}
}

// maxPositions limits how many characters of a state an attack changes, one at a time.
const maxPositions = 1024

func changedCharacter(t *trial) {
	t.eachTarget(func(f *flow) (list []variant) {
		most := maxPositions
		// The last state of the first target shows how states are protected. All other states only
		// show whether they are protected in the same way, so it is enough to change a few of their
		// characters.
		if f.target.String() != t.targets()[0].String() || f.round < len(t.honest[f.target.String()].asks) {
			most = 48
		}
		var positions []int
		for i := range len(f.state) {
			positions = append(positions, i)
		}
		for _, i := range spread(positions, most) {
			list = append(list, withState(fmt.Sprintf("character %d of %d changed", i+1, len(f.state)), func(s string) string { return changedAt(s, i) }))
		}
		return list
	})
}

// changedAt returns a copy of the text with another character at index i. In a character of
// base64 it changes the highest bit, because the lowest bits of the last character may be
// unused.
func changedAt(text string, i int) string {
	if text == "" {
		return "A"
	}
	i = min(i, len(text)-1)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	char := text[i]
	if n := strings.IndexByte(alphabet, char); n >= 0 {
		return text[:i] + string(alphabet[n^0x20]) + text[i+1:]
	}
	other := byte('A')
	if char >= 0x80 {
		return strings.ToValidUTF8(text[:i], "") + "A" + strings.ToValidUTF8(text[i+1:], "")
	}
	return text[:i] + string(other) + text[i+1:]
}

func respelled(f *flow) (list []variant) {
	add := func(what string, change func(string) string) {
		if change(f.state) != f.state {
			list = append(list, withState(what, change))
		}
	}
	add("with padding", func(s string) string { return strings.TrimRight(s, "=") + strings.Repeat("=", 4-len(s)%4) })
	add("without padding", func(s string) string { return strings.TrimRight(s, "=") })
	add("in the standard alphabet", func(s string) string { return strings.NewReplacer("-", "+", "_", "/").Replace(s) })
	add("in the alphabet of URLs", func(s string) string { return strings.NewReplacer("+", "-", "/", "_").Replace(s) })
	for _, space := range []string{" ", "\t", "\n", "\r\n", "\u00a0"} {
		add(fmt.Sprintf("with %q after it", space), func(s string) string { return s + space })
		add(fmt.Sprintf("with %q before it", space), func(s string) string { return space + s })
		add(fmt.Sprintf("with %q in the middle", space), func(s string) string { return s[:len(s)/2] + space + s[len(s)/2:] })
	}
	// The last character of a base64 text, or of each of its parts, can have unused bits.
	for part := range strings.SplitSeq(f.state, ".") {
		if bits := len(strings.TrimRight(part, "=")) * 6 % 8; len(part) >= 8 && (bits == 2 || bits == 4) {
			add("with unused bits set in the part that ends with "+quoted(part[max(0, len(part)-4):]), func(s string) string { return setUnusedBits(s, len(part)) })
		}
	}
	return spread(list, 32)
}

// setUnusedBits changes each part of s that has the given length: in the last character of that
// part, it changes the lowest bit.
func setUnusedBits(s string, length int) string {
	parts := strings.Split(s, ".")
	for i, part := range parts {
		body := strings.TrimRight(part, "=")
		if len(part) != length || body == "" {
			continue
		}
		for _, alphabet := range []string{
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		} {
			if n := strings.IndexByte(alphabet, body[len(body)-1]); n >= 0 {
				parts[i] = body[:len(body)-1] + string(alphabet[n^1]) + part[len(body):]
				break
			}
		}
	}
	return strings.Join(parts, ".")
}
