package probe

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var page string

// anchor returns the HTML id of the part of the page that shows the attacks with this verdict.
func anchor(v Verdict) string {
	switch v {
	case NotTried, Early:
		return "not-tried"
	case Refused:
		return "tried"
	}
	return "verdict-" + string(v)
}

var html = template.Must(template.New("report").Funcs(template.FuncMap{
	"verdicts":    func() []Verdict { return worstFirst },
	"tallies":     (*view).tallies,
	"parts":       (*view).parts,
	"untried":     (*view).untried,
	"early":       func(v *view) bool { return len(v.having(Early)) > 0 },
	"secrets":     func(v *view) bool { return v.Transport == "http" },
	"severe":      func(s shown) bool { return s.Verdict == Found && s.Severity != "" },
	"label":       Verdict.label,
	"plural":      tally.label,
	"detailed":    func(v Verdict) bool { return strings.HasPrefix(anchor(v), "verdict-") },
	"anchor":      anchor,
	"step":        Finding.step,
	"last":        func(f Finding, i int) bool { return i == len(f.Exchanges)-1 },
	"wordy":       func(text string) bool { return len(text) > 60 },
	"answered":    Exchange.answered,
	"long":        func(text string) bool { return len(text) > 2500 || strings.Count(text, "\n") > 24 },
	"specified":   func(url string) bool { return strings.HasPrefix(url, specification+"/") },
	"more":        func(n int) string { return counted(n, "more finding", "more findings") },
	"requests":    func(n int) string { return counted(n, "request", "requests") },
	"revision":    func() string { return revision },
	"limits":      func() string { return limits },
	"earlyMeans":  func() string { return earlyMeans },
	"bearer":      func() string { return BearerVariable },
	"otherBearer": func() string { return OtherBearerVariable },
	"tone": func(exit int) int {
		if exit == ExitNothing || exit == ExitFinding {
			return exit
		}
		return ExitUnclear
	},
}).Parse(page))

// WriteHTML writes the report as one HTML page that needs no other file: it loads no script, no
// font and no image. Use WriteHTML for a report that people open in a browser.
func (r *Report) WriteHTML(w io.Writer) error {
	var out bytes.Buffer
	if err := html.Execute(&out, r.view(maxAnswerShown).orNothing()); err != nil {
		return err
	}
	return writeAll(w, &out)
}
