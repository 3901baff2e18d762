package probe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	Server     string   // the URL or the command
	ServerName string   // what the server calls itself
	Transport  string   // http or stdio
	Targets    []string // what was called, and issued a state
	Cursors    []string // what issued a cursor
	Notes      []string // what else the reader must know
	Problem    string   // why the run ended before its time
	Exit       int
	Verdict    string // in one sentence
	Requests   int
	Results    []Result // worst first
}

// Result is what came of one attack.
type Result struct {
	Attack
	Verdict  Verdict
	Why      string         // why it is unclear or could not be tried
	Findings []Finding      // what shows it
	Outcomes map[string]int // how many variants had which outcome
	Requests int            // honest ones included
}

// Finding is one variant that got through.
type Finding struct {
	Target    string
	What      string
	Exchanges []Exchange // the requests in their order; the last one is the attack
}

// Exchange is a request and its answer, as a person can read and repeat it.
type Exchange struct {
	Curl   string // for a shell; over stdio the line alone
	Answer string
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
	var missing []string
	for _, result := range r.Results {
		if slices.Contains(require, result.ID) && (result.Verdict == NotTried || result.Verdict == Early) {
			missing = append(missing, result.ID)
		}
	}
	switch {
	case count[Found] > 0:
		r.Exit = ExitFinding
		r.Verdict = fmt.Sprintf("%s got through.", counted(count[Found], "class of attacks", "classes of attacks"))
	case r.Problem != "":
		r.Exit, r.Verdict = ExitUnclear, "It could not be told: "+r.Problem+"."
	case len(r.Targets) == 0 && slices.ContainsFunc(r.Results, func(x Result) bool { return x.needs&needState != 0 }):
		r.Exit, r.Verdict = ExitUnclear, "It could not be told: the server issued no state."
	case count[Unclear] > 0:
		r.Exit, r.Verdict = ExitUnclear, fmt.Sprintf("It could not be told for %s.", counted(count[Unclear], "class of attacks", "classes of attacks"))
	case len(missing) > 0:
		r.Exit, r.Verdict = ExitUnclear, "It could not be told: required and not tried: "+strings.Join(missing, ", ")+"."
	default:
		r.Exit, r.Verdict = ExitNothing, fmt.Sprintf("Nothing got through of %s that were tried.", counted(len(r.Results)-count[NotTried], "class of attacks", "classes of attacks"))
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
	f := Finding{Target: target, What: what}
	for _, e := range shown {
		f.Exchanges = append(f.Exchanges, Exchange{Curl: p.curl(e), Answer: p.redact(printable(clip(string(e.reply.raw), 4096)))})
		if e.reply.lost != nil {
			f.Exchanges[len(f.Exchanges)-1].Answer = p.redact(e.reply.lost.Error())
		}
	}
	return f
}

// The variables that stand for the access tokens in reports.
const (
	BearerVariable      = "MCPSEAL_PROBE_BEARER"
	OtherBearerVariable = "MCPSEAL_PROBE_OTHER_BEARER"
)

// redact puts variables in the place of the access tokens.
func (p *probe) redact(text string) string {
	for _, secret := range [][2]string{{p.Bearer, BearerVariable}, {p.OtherBearer, OtherBearerVariable}} {
		if secret[0] != "" {
			text = strings.ReplaceAll(text, secret[0], "$"+secret[1])
		}
	}
	return text
}

// maxShown is the longest body that a report repeats in full.
const maxShown = 16 << 10

// curl returns the command that repeats a request.
func (p *probe) curl(e exchange) string {
	body := e.message.text(e.id)
	if len(body) > maxShown {
		return fmt.Sprintf("# a body of %d bytes, which begins with %s", len(body), p.redact(printable(clip(body, 256))))
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
	fmt.Fprintf(&text, " \\\n  --data-binary %s", shell(body))
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
	plain := utf8.ValidString(text)
	for _, char := range text {
		plain = plain && char >= ' ' && char != 0x7f
	}
	if plain {
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

// printable returns text without anything that a terminal would act on.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		if char == '\n' || char == '\t' || char >= ' ' && (char < 0x7f || char > 0x9f) {
			return char
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
