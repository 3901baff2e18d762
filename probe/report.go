package probe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verdict is the result of an attack. Look at the verdict of each [Result] to see what
// got through.
type Verdict string

// The verdicts, worst first.
const (
	Found        Verdict = "finding"                  // the attack got through
	Unclear      Verdict = "unclear"                  // the attack was tried, but the probe cannot tell whether it got through
	AcceptedRisk Verdict = "accepted-risk"            // the attack got through, and the operator said that this is accepted
	Information  Verdict = "information"              // something worth knowing, but no hole by itself
	NotTried     Verdict = "not-tried"                // the attack could not be tried
	Early        Verdict = "refused-before-the-check" // the server refused for another reason before it checked the state, which proves nothing
	Refused      Verdict = "refused"                  // the server refused every variant
)

var worstFirst = []Verdict{Found, Unclear, AcceptedRisk, Information, NotTried, Early, Refused}

// The values of [Report].Exit, which are also the exit codes of the command tripseal probe.
const (
	ExitNothing = 0 // nothing got through
	ExitFinding = 1 // something got through
	ExitUnclear = 2 // the probe cannot tell whether something got through
)

// Report is the result of a run. In a program, check Exit. Use [Report.Write] to write the
// report for a person.
type Report struct {
	Server     string   `json:"server"`         // the URL or the command
	ServerName string   `json:"serverName"`     // what the server calls itself
	Transport  string   `json:"transport"`      // http or stdio
	Date       string   `json:"date,omitempty"` // Run does not set it; a caller may
	Targets    []string `json:"targets"`        // the targets that issued a state
	Cursors    []string `json:"cursors"`        // the lists and tools that issued a cursor
	Notes      []string `json:"notes"`          // what else the reader must know
	Problem    string   `json:"problem"`        // why the run ended early; "" if it did not
	Exit       int      `json:"exit"`           // ExitNothing, ExitFinding or ExitUnclear
	Verdict    string   `json:"verdict"`        // the result in one sentence
	Requests   int      `json:"requests"`       // how many requests were sent
	Results    []Result `json:"results"`        // worst first

	rounds  int    // the number of rounds in which targets ask questions, for all targets together
	failure string // the first problem with a target or list that the operator named; "" if there is none
}

// Result is one attack and how it ended. [Report].Results has one for each attack.
type Result struct {
	Attack
	Verdict  Verdict        `json:"verdict"`  // how the attack ended
	Why      string         `json:"why"`      // why the result is unclear, or why the attack could not be tried
	Findings []Finding      `json:"findings"` // what got through, or what is worth knowing
	Outcomes map[string]int `json:"outcomes"` // how many variants had each outcome
	Requests int            `json:"requests"` // how many requests were sent, honest ones included
}

// Finding is one variant that got through. Its exchanges show how to repeat it.
type Finding struct {
	Target    string     `json:"target"`    // the tool, prompt, resource or list that was attacked
	What      string     `json:"what"`      // which variant got through
	Exchanges []Exchange `json:"exchanges"` // the requests in their order; the last one is the attack
}

// Exchange is a request and its answer, as a person can read and repeat it. Use it to
// reproduce a finding.
type Exchange struct {
	Curl   string `json:"request"`          // a command for a shell; over stdio, the line that was sent
	Status int    `json:"status,omitempty"` // the HTTP status; 0 over stdio, or if there was no answer
	Answer string `json:"answer"`           // what the server answered
	Cut    int    `json:"cut,omitempty"`    // how many bytes of the answer were left out
}

// judge sets the verdict and the exit code of the whole run, and sorts the results. The
// exit code cannot be ExitNothing if a required attack was not tried.
func (r *Report) judge(required []string) {
	severity := []Severity{High, Medium, Low}
	slices.SortStableFunc(r.Results, func(a, b Result) int {
		if d := slices.Index(worstFirst, a.Verdict) - slices.Index(worstFirst, b.Verdict); d != 0 {
			return d
		}
		return slices.Index(severity, a.Severity) - slices.Index(severity, b.Severity)
	})
	count := r.Count()
	tried := len(r.Results) - count[NotTried] - count[Early]
	var missing []string
	for _, id := range required {
		i := slices.IndexFunc(r.Results, func(result Result) bool { return result.ID == id })
		if i < 0 || r.Results[i].Verdict == NotTried || r.Results[i].Verdict == Early {
			missing = append(missing, id)
		}
	}
	switch {
	case count[Found] > 0:
		r.Exit = ExitFinding
		r.Verdict = fmt.Sprintf("%s got through.", counted(count[Found], "class of attacks", "classes of attacks"))
	case r.Problem != "":
		r.setUnclear(r.Problem)
	case r.failure != "":
		r.setUnclear(r.failure)
	case len(r.Targets) == 0 && slices.ContainsFunc(r.Results, func(x Result) bool { return x.needs&needState != 0 }):
		r.setUnclear(append([]string{"the server issued no state"}, r.Notes...)...)
	case count[Unclear] > 0:
		r.Exit, r.Verdict = ExitUnclear, fmt.Sprintf("It could not be told for %s.", counted(count[Unclear], "class of attacks", "classes of attacks"))
	case len(missing) > 0:
		r.setUnclear("required and not tried: " + strings.Join(missing, ", "))
	case tried == 0:
		why := []string{"no attack was tried"}
		for _, result := range r.Results {
			why = append(why, result.Why)
		}
		r.setUnclear(why...)
	default:
		r.Exit, r.Verdict = ExitNothing, fmt.Sprintf("Nothing got through of %s that were tried.", counted(tried, "class of attacks", "classes of attacks"))
		if risks := count[AcceptedRisk]; risks > 0 {
			r.Verdict = fmt.Sprintf("Of %s that were tried, only %s got through.", counted(tried, "class of attacks", "classes of attacks"), counted(risks, "accepted risk", "accepted risks"))
		}
	}
}

// setUnclear sets the verdict that the result is unclear, with at most two of the reasons.
func (r *Report) setUnclear(reasons ...string) {
	r.Exit, r.Verdict = ExitUnclear, "It could not be told: "+strings.Join(reasons[:min(2, len(reasons))], ": ")
	if !strings.HasSuffix(r.Verdict, "?") && !strings.HasSuffix(r.Verdict, "…") {
		r.Verdict += "."
	}
}

// Count returns how many attacks have each verdict. Use it for a summary.
func (r *Report) Count() map[Verdict]int {
	count := map[Verdict]int{}
	for _, result := range r.Results {
		count[result.Verdict]++
	}
	return count
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (p *probe) finding(target, what string, shown []exchange) Finding {
	if p.exposed {
		what, shown = "it got through; the notes say why no more is shown", nil
	}
	f := Finding{Target: target, What: p.redact(what)}
	for _, e := range shown {
		// Tokens are redacted before the text is cut, because half of a token is a secret too.
		text := string(e.reply.raw)
		if e.reply.lost != nil {
			text = e.reply.lost.Error()
		}
		text, left := cut(p.redact(text), maxAnswerShown)
		f.Exchanges = append(f.Exchanges, Exchange{Curl: p.curl(e), Status: e.reply.status, Answer: printable(text), Cut: left})
	}
	return f
}

// maxAnswerShown is how many bytes of an answer a report keeps.
const maxAnswerShown = 4 << 10

// cut shortens a text to at most n bytes, at the end of a character, and returns how many
// bytes it left out.
func cut(text string, n int) (head string, left int) {
	if len(text) <= n {
		return text, 0
	}
	for back := n; back > n-utf8.UTFMax && back >= 0; back-- {
		if utf8.RuneStart(text[back]) {
			n = back
			break
		}
	}
	return text[:n], len(text) - n
}

// maxShown is the length in bytes of the longest body that a report repeats in full.
const maxShown = 16 << 10

// curl returns the shell command that repeats a request. Over stdio it returns the line that
// was sent.
func (p *probe) curl(e exchange) string {
	body := e.message.text(e.id)
	if len(body) > maxShown {
		return fmt.Sprintf("# a body of %d bytes, which begins with %s", len(body), shellQuote(clip(p.redact(body), 256)))
	}
	if p.server.kind() != "http" {
		return p.redact(printable(body))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "curl -sS %s", shellQuote(p.server.name()))
	header := e.message.headers()
	for _, name := range slices.Sorted(keysOf(header)) {
		fmt.Fprintf(&text, " \\\n  -H %s", shellQuote(name+": "+header.Get(name)))
	}
	if user := [...]string{p.Bearer, p.OtherBearer, ""}[e.message.as]; p.UserHeader != "" && user != "" {
		fmt.Fprintf(&text, " \\\n  -H %s", shellQuote(p.UserHeader+": "+user))
	} else if variable := [...]string{BearerVariable, OtherBearerVariable, ""}[e.message.as]; variable != "" && [...]string{p.Bearer, p.OtherBearer, ""}[e.message.as] != "" {
		fmt.Fprintf(&text, " \\\n  -H \"Authorization: Bearer $%s\"", variable)
	}
	// redact runs before shellQuote: shellQuote escapes single quotes, and redact may not find a
	// token that has such an escape.
	fmt.Fprintf(&text, " \\\n  --data-binary %s", shellQuote(p.redact(body)))
	return p.redact(text.String())
}

func keysOf(header http.Header) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range header {
			if !yield(name) {
				return
			}
		}
	}
}

// shellQuote quotes a text for a shell. If the text is not printable, the result has escapes
// that bash understands.
func shellQuote(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, moves) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var out strings.Builder
	out.WriteString("$'")
	for _, b := range []byte(text) {
		switch {
		case b == '\'' || b == '\\':
			out.WriteString(`\` + string(rune(b)))
		case b < ' ' || b > '~':
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	out.WriteByte('\'')
	return out.String()
}

// moves reports whether a character is invisible and can change how the text around it is
// shown. Examples are control characters, and characters that change the direction of the text.
func moves(char rune) bool { return !unicode.IsGraphic(char) }

// printable replaces the characters with which a text could control a terminal or a browser.
// Line ends and tabs stay.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		if char == '\n' || char == '\t' || !moves(char) {
			return char
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
