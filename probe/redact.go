package probe

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// The environment variables with the access tokens. Reports show their names instead of the
// tokens: set both variables before you repeat a request of a report. The command tripseal
// probe reads the tokens from these variables; this package does not.
const (
	BearerVariable      = "TRIPSEAL_PROBE_BEARER"       // stands for Options.Bearer
	OtherBearerVariable = "TRIPSEAL_PROBE_OTHER_BEARER" // stands for Options.OtherBearer
)

// secret is a text that a report must not show: an access token, as it is or encoded.
type secret struct {
	text     string
	variable string // the name that replaces the text in reports: $ and one of the variables above
}

// secretsOf returns the access tokens, as they are and in several encodings. The longest text
// comes first, because one token may begin with the other.
func secretsOf(o *Options) (all []secret) {
	if o.UserHeader != "" {
		return nil // if UserHeader is set, Bearer and OtherBearer hold user names, and user names are not secret
	}
	for _, s := range []secret{{o.Bearer, "$" + BearerVariable}, {o.OtherBearer, "$" + OtherBearerVariable}} {
		if s.text == "" {
			continue
		}
		all = append(all, s)
		encoded := hex.EncodeToString([]byte(s.text))
		texts := []string{encoded, strings.ToUpper(encoded)}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			whole := e.EncodeToString([]byte(s.text))
			texts = append(texts, whole, strings.TrimRight(whole, "="))
			// The token may be a part of a longer text. The base64 of the token depends on the
			// number of bytes before the token: there are three variants. This loop adds all three,
			// without the characters at the ends that also depend on other bytes.
			for before, skip := range []int{0, 2, 3} {
				shifted := e.EncodeToString([]byte(strings.Repeat("\x00", before) + s.text))
				texts = append(texts, shifted[skip:(before+len(s.text))*8/6])
			}
		}
		for _, text := range texts {
			if len(text) >= 8 { // a shorter text may occur by coincidence
				all = append(all, secret{text, s.variable})
			}
		}
	}
	slices.SortFunc(all, func(a, b secret) int { return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text)) })
	return slices.Compact(all)
}

// redact replaces the access tokens in a text by the names of variables. It finds a token as it
// is, in base64, in hex, and with the escapes of JSON, a URL or HTML. It also finds a token whose
// end was cut off.
func (p *probe) redact(text string) string {
	p.prepare.Do(func() { p.secrets = secretsOf(&p.Options) })
	all := p.secrets
	if len(all) == 0 {
		return text
	}
	var begins [256]bool
	for _, char := range []byte{'\\', '%', '&', '$'} {
		begins[char] = true
	}
	for _, s := range all {
		begins[s.text[0]] = true
	}
	var out strings.Builder
	done := 0
	for i := 0; i < len(text); {
		if !begins[text[i]] {
			i++
			continue
		}
		variable, size := find(text[i:], all)
		if size == 0 {
			i++
			continue
		}
		out.WriteString(text[done:i] + variable)
		i += size
		done = i
	}
	return out.String() + text[done:]
}

// find looks for a secret at the beginning of a text. It returns the variable that replaces the
// secret, and how many bytes of the text the secret takes: 0 if there is none.
func find(text string, all []secret) (variable string, size int) {
	for _, name := range []string{"$" + OtherBearerVariable, "$" + BearerVariable} {
		if strings.HasPrefix(text, name) { // this secret was already redacted
			return name, len(name)
		}
	}
	for _, s := range all {
		if size := s.length(text); size > 0 {
			return s.variable, size
		}
	}
	return "", 0
}

// length returns how many bytes the secret takes at the beginning of a text. If the text was
// cut inside the secret, these are the bytes before the cut. length returns 0 if the text does
// not begin with the secret.
func (s secret) length(text string) int {
	at := 0
	for i := range len(s.text) {
		size := spelled(text[at:], s.text[i])
		if size == 0 {
			// The mark "…" shows that the text was cut here. A text that ends without the mark
			// may match by coincidence, so more of its characters must match.
			if strings.HasPrefix(text[at:], "…") && i >= 3 || at == len(text) && i >= 8 {
				return at
			}
			return 0
		}
		at += size
	}
	return at
}

// spelled returns the length of the given character at the beginning of a text, in bytes. The
// character may be an escape there. If the text begins with another character, spelled returns 0.
func spelled(text string, char byte) int {
	if text == "" {
		return 0
	}
	number := func(from, size, base int) bool {
		if len(text) < from+size {
			return false
		}
		n, err := strconv.ParseUint(text[from:from+size], base, 32)
		return err == nil && n == uint64(char)
	}
	switch text[0] {
	case '%':
		if number(1, 2, 16) {
			return 3
		}
	case '\\':
		after := len(text) - len(strings.TrimLeft(text, `\`)) // JSON inside JSON has several backslashes
		switch {
		case after < len(text) && (text[after] == 'u' || text[after] == 'U') && number(after+1, 4, 16):
			return after + 5
		case after < len(text) && text[after] == 'x' && number(after+1, 2, 16):
			return after + 3
		case char == '\\':
			return after
		case after < len(text) && text[after] == char:
			return after + 1
		}
	case '&':
		if end := strings.IndexByte(text[:min(len(text), 10)], ';'); end > 2 && text[1] == '#' {
			if number(2, end-2, 10) || end > 3 && (text[2] == 'x' || text[2] == 'X') && number(3, end-3, 16) {
				return end + 1
			}
		}
		for name, means := range map[string]byte{"&amp;": '&', "&lt;": '<', "&gt;": '>', "&quot;": '"'} {
			if char == means && strings.HasPrefix(text, name) {
				return len(name)
			}
		}
	}
	if text[0] == char {
		return 1
	}
	return 0
}

// exposes reports whether the server put an access token into a state or a cursor. This matters
// because attacks change characters of the state, and the method redact does not find a changed
// token.
func (p *probe) exposes(r *reply) bool {
	result := r.message.Result
	if result == nil {
		return false
	}
	for _, text := range []*string{result.RequestState, result.NextCursor} {
		if text != nil && p.redact(*text) != *text {
			return true
		}
	}
	var page struct{ NextCursor string }
	return json.Unmarshal(result.StructuredContent, &page) == nil && p.redact(page.NextCursor) != page.NextCursor
}

// redactAll redacts a report: all texts that may contain something from the server.
func (p *probe) redactAll(r *Report) {
	hide := func(texts ...*string) {
		for _, text := range texts {
			*text = p.redact(*text)
		}
	}
	hide(&r.Server, &r.ServerName, &r.Problem, &r.Verdict)
	for _, list := range [][]string{r.Targets, r.Cursors, r.Notes} {
		for i := range list {
			hide(&list[i])
		}
	}
	for i := range r.Results {
		hide(&r.Results[i].Why)
		for j := range r.Results[i].Findings {
			f := &r.Results[i].Findings[j]
			hide(&f.Target, &f.What)
			for k := range f.Exchanges {
				hide(&f.Exchanges[k].Curl, &f.Exchanges[k].Answer)
			}
		}
	}
}
