package probe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verdict is what the probe can say of an attack.
type Verdict string

// The verdicts, worst first.
const (
	Found        Verdict = "finding"                  // it got through
	Unclear      Verdict = "unclear"                  // it was tried, and nothing can be told
	AcceptedRisk Verdict = "accepted-risk"            // it got through, and the operator had said that this is accepted
	Information  Verdict = "information"              // worth knowing, no hole by itself
	NotTried     Verdict = "not-tried"                // it could not be tried
	Early        Verdict = "refused-before-the-check" // refused, but for another reason: proves nothing
	Refused      Verdict = "refused"                  // every variant was refused
)

var worstFirst = []Verdict{Found, Unclear, AcceptedRisk, Information, NotTried, Early, Refused}

// Exit codes of the command.
const (
	ExitNothing = 0 // nothing got through
	ExitFinding = 1 // something got through
	ExitUnclear = 2 // it could not be told
)

// Report is what a run showed.
type Report struct {
	Server     string   `json:"server"`         // the URL or the command
	ServerName string   `json:"serverName"`     // what the server calls itself
	Transport  string   `json:"transport"`      // http or stdio
	Date       string   `json:"date,omitempty"` // set by the caller who wants one in the report
	Targets    []string `json:"targets"`        // what was called, and issued a state
	Cursors    []string `json:"cursors"`        // what issued a cursor
	Notes      []string `json:"notes"`          // what else the reader must know
	Problem    string   `json:"problem"`        // why the run ended before its time
	Exit       int      `json:"exit"`
	Verdict    string   `json:"verdict"` // in one sentence
	Requests   int      `json:"requests"`
	Results    []Result `json:"results"` // worst first

	rounds  int    // how many times the targets ask in all
	failure string // what the operator named and the probe could not use, and why
}

// Result is what came of one attack.
type Result struct {
	Attack
	Verdict  Verdict        `json:"verdict"`
	Why      string         `json:"why"`      // why it is unclear or could not be tried
	Findings []Finding      `json:"findings"` // what shows it
	Outcomes map[string]int `json:"outcomes"` // how many variants had which outcome
	Requests int            `json:"requests"` // honest ones included
}

// Finding is one variant that got through.
type Finding struct {
	Target    string     `json:"target"`
	What      string     `json:"what"`
	Exchanges []Exchange `json:"exchanges"` // the requests in their order; the last one is the attack
}

// Exchange is a request and its answer, as a person can read and repeat it.
type Exchange struct {
	Curl   string `json:"request"`          // for a shell; over stdio the line alone
	Status int    `json:"status,omitempty"` // of HTTP; 0 if there was no answer
	Answer string `json:"answer"`
	Cut    int    `json:"cut,omitempty"` // how many bytes of the answer were left out
}

// judge sets the verdict of the whole, and sorts the results.
func (r *Report) judge(require []string) {
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
	for _, id := range require {
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
		r.untold(r.Problem)
	case r.failure != "":
		r.untold(r.failure)
	case len(r.Targets) == 0 && slices.ContainsFunc(r.Results, func(x Result) bool { return x.needs&needState != 0 }):
		r.untold(append([]string{"the server issued no state"}, r.Notes...)...)
	case count[Unclear] > 0:
		r.Exit, r.Verdict = ExitUnclear, fmt.Sprintf("It could not be told for %s.", counted(count[Unclear], "class of attacks", "classes of attacks"))
	case len(missing) > 0:
		r.untold("required and not tried: " + strings.Join(missing, ", "))
	case tried == 0:
		why := []string{"no attack was tried"}
		for _, result := range r.Results {
			why = append(why, result.Why)
		}
		r.untold(why...)
	default:
		r.Exit, r.Verdict = ExitNothing, fmt.Sprintf("Nothing got through of %s that were tried.", counted(tried, "class of attacks", "classes of attacks"))
		if risks := count[AcceptedRisk]; risks > 0 {
			r.Verdict = fmt.Sprintf("Of %s that were tried, only %s got through.", counted(tried, "class of attacks", "classes of attacks"), counted(risks, "accepted risk", "accepted risks"))
		}
	}
}

// untold sets the verdict that nothing can be told, and why: the first two reasons.
func (r *Report) untold(why ...string) {
	r.Exit, r.Verdict = ExitUnclear, "It could not be told: "+strings.Join(why[:min(2, len(why))], ": ")
	if !strings.HasSuffix(r.Verdict, "?") && !strings.HasSuffix(r.Verdict, "…") {
		r.Verdict += "."
	}
}

// Count returns how many attacks have which verdict.
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
		// A token is redacted before the text is cut: half of one is a secret too.
		text := string(e.reply.raw)
		if e.reply.lost != nil {
			text = e.reply.lost.Error()
		}
		text, left := cut(p.redact(text), maxAnswerShown)
		f.Exchanges = append(f.Exchanges, Exchange{Curl: p.curl(e), Status: e.reply.status, Answer: printable(text), Cut: left + e.reply.left})
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

// maxShown is the longest body that a report repeats in full.
const maxShown = 16 << 10

// curl returns the command that repeats a request.
func (p *probe) curl(e exchange) string {
	body := e.message.text(e.id)
	if len(body) > maxShown {
		return fmt.Sprintf("# a body of %d bytes, which begins with %s", len(body), shell(clip(p.redact(body), 256)))
	}
	if p.server.kind() != "http" {
		return p.redact(printable(body))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "curl -sS %s", shell(p.server.name()))
	header := e.message.headers()
	for _, name := range slices.Sorted(keysOf(header)) {
		fmt.Fprintf(&text, " \\\n  -H %s", shell(name+": "+header.Get(name)))
	}
	if variable := [...]string{BearerVariable, OtherBearerVariable, ""}[e.message.as]; variable != "" && [...]string{p.Bearer, p.OtherBearer, ""}[e.message.as] != "" {
		fmt.Fprintf(&text, " \\\n  -H \"Authorization: Bearer $%s\"", variable)
	}
	fmt.Fprintf(&text, " \\\n  --data-binary %s", shell(p.redact(body))) // quotes would hide a token that has one in it
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

// shell quotes a text for a shell. A text that is not printable is written with escapes,
// which bash understands.
func shell(text string) string {
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

// moves reports whether a character is not shown but acts on what is shown around it: a
// control character, or one that changes the direction of the text.
func moves(char rune) bool { return !unicode.IsGraphic(char) }

// printable returns text without anything that a terminal or a browser would act on. Line
// ends and tabs stay.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		if char == '\n' || char == '\t' || !moves(char) {
			return char
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
