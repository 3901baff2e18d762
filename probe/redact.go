package probe

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	escapes "html"
	"net/url"
	"slices"
	"strings"
)

// The environment variables with the access tokens. Reports show their names instead of the
// tokens: set both variables before you repeat a request of a report. The command tripseal
// probe reads the tokens from these variables; this package does not.
const (
	BearerVariable      = "TRIPSEAL_PROBE_BEARER"       // stands for Options.Bearer
	OtherBearerVariable = "TRIPSEAL_PROBE_OTHER_BEARER" // stands for Options.OtherBearer
)

// secretsOf returns what replaces the access tokens in a text, or nil if there are none. It finds a token as it
// is, in base64, in hex, and with the escapes of JSON, a URL or HTML.
func secretsOf(o *Options) *strings.Replacer {
	type secret struct{ text, variable string }
	// The names that replace tokens stay, so that a text can be redacted twice.
	all := []secret{{"$" + OtherBearerVariable, "$" + OtherBearerVariable}, {"$" + BearerVariable, "$" + BearerVariable}}
	if o.UserHeader != "" || o.Bearer+o.OtherBearer == "" {
		return nil // if UserHeader is set, Bearer and OtherBearer hold user names, and user names are not secret
	}
	for _, s := range []secret{{o.Bearer, all[1].text}, {o.OtherBearer, all[0].text}} {
		if s.text == "" {
			continue
		}
		inJSON := strings.Trim(quoted(s.text), `"`)
		encoded := hex.EncodeToString([]byte(s.text))
		texts := []string{
			inJSON, strings.NewReplacer("+", `\u002B`, "/", `\/`, "'", `\u0027`).Replace(inJSON), strings.NewReplacer("+", `\u002b`, "'", `\u0027`).Replace(inJSON),
			url.QueryEscape(s.text), url.PathEscape(s.text), escapes.EscapeString(s.text), encoded, strings.ToUpper(encoded),
		}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			whole := e.EncodeToString([]byte(s.text))
			texts = append(texts, whole, strings.TrimRight(whole, "="), url.QueryEscape(whole))
			// The token may be a part of a longer text. The base64 of the token depends on the
			// number of bytes before the token: there are three variants. This loop adds all three,
			// without the characters at the ends that also depend on other bytes.
			for before, skip := range []int{0, 2, 3} {
				shifted := e.EncodeToString([]byte(strings.Repeat("\x00", before) + s.text))
				texts = append(texts, shifted[skip:(before+len(s.text))*8/6])
			}
		}
		all = append(all, s)
		for _, text := range texts { // JSON inside JSON has two backslashes
			if nested := strings.ReplaceAll(text, `\`, `\\`); nested != text {
				all = append(all, secret{nested, s.variable})
			}
			if len(text) >= 8 { // a shorter text may occur by coincidence
				all = append(all, secret{text, s.variable})
			}
		}
	}
	// The longest text comes first, because one token may begin with the other.
	slices.SortStableFunc(all[2:], func(a, b secret) int { return len(b.text) - len(a.text) })
	var pairs []string
	for _, s := range all {
		pairs = append(pairs, s.text, s.variable)
	}
	return strings.NewReplacer(pairs...)
}

// redact replaces the access tokens in a text by the names of variables: see secretsOf.
func (p *probe) redact(text string) string {
	p.prepare.Do(func() { p.secrets = secretsOf(&p.Options) })
	if p.secrets == nil {
		return text
	}
	return p.secrets.Replace(text)
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
