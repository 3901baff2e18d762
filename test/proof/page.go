package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/tripseal/tripseal/probe"
)

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("proof").Funcs(template.FuncMap{
	"label": func(v probe.Verdict) string {
		switch v {
		case probe.Found:
			return "got through"
		case probe.Refused:
			return "did not get through"
		}
		return strings.ReplaceAll(string(v), "-", " ")
	},
}).Parse(source))

// comparison is what the page shows.
type comparison struct {
	Classes         int // how many classes of attacks the probe knows
	Without, With   *probe.Report
	Through, Others []pair // the attacks that got through without gosdk.Protect, and the other attacks
}

// pair is one attack with two outcomes: on the server without gosdk.Protect, and on the server with
// gosdk.Protect.
type pair struct {
	probe.Attack
	Without, With outcome
}

// outcome is how an attack ended on one server.
type outcome struct {
	Verdict probe.Verdict
	What    string // what the attack sent, or why it was not tried
	Said    string // the answer of the tool: what it did, or a question
	Steps   []step // the requests that got through, with their answers
	Answer  string // an answer with which the server rejects a token
}

// step is a request of an attack and its answer.
type step struct{ Title, Request, Answer string }

// write writes the page.
func write(w io.Writer, without, with *side) error {
	all := comparison{Classes: len(without.report.Results), Without: without.report, With: with.report}
	for _, result := range without.report.Results {
		i := slices.IndexFunc(with.report.Results, func(r probe.Result) bool { return r.ID == result.ID })
		if i < 0 {
			return fmt.Errorf("%s was tried on one server only", result.ID)
		}
		p := pair{result.Attack, without.outcome(result), with.outcome(with.report.Results[i])}
		if result.Verdict == probe.Found {
			all.Through = append(all.Through, p)
		} else {
			all.Others = append(all.Others, p)
		}
	}
	return page.Execute(w, all)
}

func (s *side) outcome(r probe.Result) outcome {
	o := outcome{Verdict: r.Verdict, What: r.Why}
	switch {
	case len(r.Findings) > 0:
		f := mostTelling(r.Findings)
		o.What = f.Target + ": " + f.What
		if r.Verdict != probe.Found || len(f.Exchanges) == 0 {
			break
		}
		o.Said = sentence(f.Exchanges[len(f.Exchanges)-1].Answer)
		for i, e := range f.Exchanges {
			title := fmt.Sprintf("Request %d of %d", i+1, len(f.Exchanges))
			if i == len(f.Exchanges)-1 {
				title += ", the attack"
			}
			o.Steps = append(o.Steps, step{title, s.stable(e.Curl, i+1), s.stable(e.Answer, i+1)})
		}
	case r.Verdict == probe.Refused:
		o.What = refusals(r.Outcomes)
		if answer := s.rejected[r.ID]; answer != nil {
			o.Answer = s.stable(strings.TrimSpace(string(answer)), 1)
		}
	}
	return o
}

// mostTelling returns the first finding in which the tool acted. If there is no such finding, it
// returns the first finding of all.
func mostTelling(all []probe.Finding) probe.Finding {
	for _, f := range all {
		if n := len(f.Exchanges); n > 0 && read(f.Exchanges[n-1].Answer).Result.ResultType == "complete" {
			return f
		}
	}
	return all[0]
}

// reply is an answer of the server. It has only the members that the page needs.
type reply struct {
	Result struct {
		ResultType    string
		Content       []struct{ Text string }
		InputRequests map[string]struct{ Params struct{ Message string } }
	}
}

func read(answer string) (r reply) {
	json.Unmarshal([]byte(answer), &r) // an answer that is not JSON gives an empty reply
	return r
}

// sentence returns a sentence with what the tool says or asks. It returns "" if the answer has
// neither a text nor a question.
func sentence(answer string) string {
	r := read(answer)
	for _, c := range r.Result.Content {
		return "The tool says: “" + c.Text + "”"
	}
	for _, q := range r.Result.InputRequests {
		return "The tool asks: “" + q.Params.Message + "”"
	}
	return ""
}

var requestID = regexp.MustCompile(`"id":\d+`)

// stable replaces what differs from run to run. The address of the server becomes a fixed
// one, and the id of the request becomes n.
func (s *side) stable(text string, n int) string {
	text = strings.ReplaceAll(text, s.report.Server, "http://127.0.0.1:8080/mcp")
	return requestID.ReplaceAllString(text, fmt.Sprintf(`"id":%d`, n))
}

// refusals returns a text that says how the server refused an attack. The text has no
// numbers, because the numbers depend on the tokens, which differ from run to run.
func refusals(outcomes map[string]int) string {
	var words []string
	for _, o := range []struct{ name, words string }{
		{"rejected", "the state was rejected"},
		{"asked", "the question was asked again"},
		{"a tool's error", "the tool reported an error"},
		{"refused before the check", "the request was refused before the check"},
		{"completed", "the call ended as an honest call does"},
	} {
		if outcomes[o.name] > 0 {
			words = append(words, o.words)
		}
	}
	return strings.Join(words, ", or ")
}
