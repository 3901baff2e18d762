package probe

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

type format struct {
	name  string
	write func(r *Report, w io.Writer, colour bool) error
}

var formats = []format{
	{"text", (*Report).WriteText},
	{"json", func(r *Report, w io.Writer, _ bool) error { return r.WriteJSON(w) }},
	{"junit", func(r *Report, w io.Writer, _ bool) error { return r.WriteJUnit(w) }},
	{"html", func(r *Report, w io.Writer, _ bool) error { return r.WriteHTML(w) }},
}

// Formats returns the names of the formats in which a report can be written. Use it in
// the help text of a program.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Write writes the report in the given format, one of [Formats]. Only the format "text" can have
// colours. Use Write if the format is a setting of your program.
func (r *Report) Write(w io.Writer, format string, colour bool) error {
	for _, f := range formats {
		if f.name == format {
			return f.write(r, w, colour)
		}
	}
	return fmt.Errorf("there is no format %q; the formats are %s", format, strings.Join(Formats(), ", "))
}

// The limits of a report for people. The JSON report has everything.
const (
	maxFindings = 3   // findings of one attack
	maxNames    = 12  // targets; the same limit holds for cursors, and for notes
	maxLine     = 600 // bytes of a text that is one line
)

// view is a report as people see it: of limited length, and without characters that control a
// terminal or a browser.
type view struct {
	Report
	Results []shown
}

// shown is a result as people see it.
type shown struct {
	Result
	More    int    // how many findings are not shown
	Tried   string // how many variants had which outcome
	Summary string // one line that says what got through, or why the result is unclear
}

// view returns the report as people see it, with at most maxBytes bytes of each answer of the
// server.
func (r *Report) view(maxBytes int) *view {
	v := &view{Report: *r}
	for _, text := range []*string{&v.Server, &v.ServerName, &v.Transport, &v.Date, &v.Problem, &v.Report.Verdict} {
		*text = oneLine(*text)
	}
	for _, list := range []*[]string{&v.Targets, &v.Cursors, &v.Notes} {
		*list = few(*list)
	}
	for _, result := range r.Results {
		s := shown{Result: result, More: max(0, len(result.Findings)-maxFindings), Tried: tried(result.Outcomes)}
		for _, text := range []*string{&s.ID, &s.Title, &s.Means, &s.Section.Title, &s.Section.URL, &s.Fix, (*string)(&s.Severity), &s.Why} {
			*text = oneLine(*text)
		}
		if !slices.Contains(worstFirst, s.Verdict) {
			s.Verdict = Unclear
		}
		s.Findings = nil
		for _, f := range result.Findings[:len(result.Findings)-s.More] {
			seen := Finding{Target: oneLine(f.Target), What: oneLine(f.What)}
			for _, e := range f.Exchanges {
				text, left := cut(e.Answer, maxBytes)
				seen.Exchanges = append(seen.Exchanges, Exchange{Curl: printable(e.Curl), Status: e.Status, Answer: printable(text), Cut: e.Cut + left})
			}
			s.Findings = append(s.Findings, seen)
		}
		s.Summary = s.summary()
		v.Results = append(v.Results, s)
	}
	return v
}

// orNothing removes the list of attacks if a problem kept the probe from trying any of them.
// Then the reader needs to know only the problem.
func (v *view) orNothing() *view {
	if v.Problem != "" && len(v.having(NotTried)) == len(v.Results) {
		v.Results = nil
	}
	return v
}

func (s *shown) summary() string {
	switch {
	case s.Verdict == Unclear && s.Why != "":
		return s.Why
	case len(s.Findings) > 0:
		text := s.Findings[0].title()
		if more := len(s.Findings) - 1 + s.More; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		return text
	case s.Why != "":
		return s.Why
	}
	return s.Tried
}

// title says in one line what got through, and where.
func (f Finding) title() string {
	return strings.TrimSuffix(strings.TrimPrefix(f.Target+": "+f.What, ": "), ": ")
}

// having returns the results with one of the verdicts.
func (v *view) having(verdicts ...Verdict) (some []shown) {
	for _, s := range v.Results {
		if slices.Contains(verdicts, s.Verdict) {
			some = append(some, s)
		}
	}
	return some
}

// part is what a report says about all attacks with one verdict.
type part struct {
	Title   string
	Verdict Verdict
	Results []shown
}

// parts returns the attacks that need more than a row of the table, grouped by their verdict.
func (v *view) parts() (all []part) {
	for _, p := range []part{{Title: "Findings", Verdict: Found}, {Title: "Unclear", Verdict: Unclear}, {Title: "Accepted risks", Verdict: AcceptedRisk}, {Title: "Information", Verdict: Information}} {
		if p.Results = v.having(p.Verdict); len(p.Results) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// reason says why the results of some attacks are not known.
type reason struct {
	Why     string
	Attacks []shown
}

// untried returns the attacks whose result is not known, grouped by the reason.
func (v *view) untried() (all []reason) {
	for _, s := range v.having(NotTried, Early) {
		i := slices.IndexFunc(all, func(r reason) bool { return r.Why == s.Why })
		if i < 0 {
			i, all = len(all), append(all, reason{Why: s.Why})
		}
		all[i].Attacks = append(all[i].Attacks, s)
	}
	return all
}

// tally is a verdict, and the number of attacks that have it.
type tally struct {
	Verdict Verdict
	Count   int
}

// tallies returns the verdicts that occur and how often, worst first.
func (v *view) tallies() (all []tally) {
	for _, verdict := range worstFirst {
		if n := len(v.having(verdict)); n > 0 {
			all = append(all, tally{verdict, n})
		}
	}
	return all
}

// label returns the verdict as a person reads it, in the plural if the count needs it.
func (n tally) label() string {
	if n.Count > 1 && (n.Verdict == Found || n.Verdict == AcceptedRisk) {
		return n.Verdict.label() + "s"
	}
	return n.Verdict.label()
}

// label returns the verdict as a person reads it.
func (v Verdict) label() string {
	switch v {
	case Found:
		return "Finding"
	case AcceptedRisk:
		return "Accepted risk"
	case Information:
		return "Information"
	case NotTried:
		return "Not tried"
	case Early:
		return "Refused early"
	case Refused:
		return "Refused"
	}
	return "Unclear"
}

// limits says what a report does not show.
const limits = "The probe sends known attacks from outside. It does not read the server's code, and an attack that it does not know may still work."

// earlyMeans explains the label of the verdict Early.
const earlyMeans = "Refused early means that the server refused for another reason, before it checked the state, so nothing is known."

// oneLine returns a text as one line, cut after maxLine bytes.
func oneLine(text string) string {
	text, left := cut(text, maxLine)
	text = strings.Join(strings.Fields(printable(text)), " ")
	if left > 0 {
		text += fmt.Sprintf("… (%s left out)", counted(left, "byte", "bytes"))
	}
	return text
}

func few(list []string) (some []string) {
	for _, text := range list[:min(len(list), maxNames)] {
		some = append(some, oneLine(text))
	}
	if more := len(list) - maxNames; more > 0 {
		some = append(some, fmt.Sprintf("and %d more", more))
	}
	return some
}

// tried says how many variants had each outcome, with the most frequent outcome first.
func tried(outcomes map[string]int) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(outcomes)), func(name string) bool { return outcomes[name] == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(outcomes[b], outcomes[a]) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%d × %s", outcomes[name], oneLine(name))
	}
	return strings.Join(few(names), ", ")
}

// leftOut says how much of an answer is not shown. It returns "" if all of it is shown.
func (e Exchange) leftOut() string {
	if e.Cut == 0 {
		return ""
	}
	return counted(e.Cut, "byte", "bytes") + " left out"
}

// step returns the heading of request i of a finding.
func (f Finding) step(i int) string {
	switch n := len(f.Exchanges); {
	case n == 1:
		return "The attack"
	case i == n-1:
		return fmt.Sprintf("Request %d of %d, the attack", i+1, n)
	default:
		return fmt.Sprintf("Request %d of %d", i+1, n)
	}
}

// answered returns the heading of the answer to a request.
func (e Exchange) answered() string {
	text := "Answer"
	if e.Status > 0 {
		text += fmt.Sprintf(", HTTP %d", e.Status)
	}
	if left := e.leftOut(); left != "" {
		text += ", " + left
	}
	return text
}

// writeAll writes a finished report. Callers build the whole report in memory first: if
// they cannot build it, nothing is written.
func writeAll(w io.Writer, text *bytes.Buffer) error {
	_, err := w.Write(text.Bytes())
	return err
}
