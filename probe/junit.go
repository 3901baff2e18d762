package probe

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitCounts
	Suite junitSuite `xml:"testsuite"`
}

type junitCounts struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
}

type junitSuite struct {
	junitCounts
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Skipped *junitWhy `xml:"skipped"`
	Error   *junitWhy `xml:"error"`
	Failure *junitWhy `xml:"failure"`
	Out     string    `xml:"system-out,omitempty"`
}

type junitWhy struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

const junitClass = "tripseal.probe"

// WriteJUnit writes the report as JUnit XML, with a test case for each attack. If the run
// failed and none of these test cases did, it adds a test case with the reason as its error.
// Otherwise a CI system would show success. Use WriteJUnit for a CI system that shows test
// results.
func (r *Report) WriteJUnit(w io.Writer) error {
	v := r.view(2 << 10)
	suite := junitSuite{junitCounts: junitCounts{Name: "tripseal probe"}}
	for _, p := range []junitProperty{
		{"verdict", v.Report.Verdict}, {"server", v.Server}, {"serverName", v.ServerName}, {"transport", v.Transport}, {"date", v.Date},
		{"targets", strings.Join(v.Targets, ", ")}, {"cursors", strings.Join(v.Cursors, ", ")},
		{"notes", strings.Join(v.Notes, "; ")}, {"requests", fmt.Sprint(v.Requests)},
	} {
		if p.Value != "" {
			suite.Properties = append(suite.Properties, p)
		}
	}
	for _, s := range v.Results {
		c := junitCase{Class: junitClass, Name: s.ID}
		message := s.Title + ": " + s.Summary
		switch s.Verdict {
		case Refused:
		case NotTried, Early:
			c.Skipped = &junitWhy{Message: s.Summary, Type: string(s.Verdict)}
			suite.Skipped++
		case AcceptedRisk, Information:
			c.Out = s.Verdict.label() + "\n" + s.plain(r.Transport)
		case Found:
			c.Failure = &junitWhy{Message: message, Type: string(s.Severity), Text: s.plain(r.Transport)}
			suite.Failures++
		default:
			c.Error = &junitWhy{Message: message, Type: string(Unclear), Text: s.plain(r.Transport)}
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if r.Exit != ExitNothing && suite.Failures+suite.Errors == 0 {
		suite.Cases = append(suite.Cases, junitCase{Class: junitClass, Name: "run", Error: &junitWhy{Message: v.Report.Verdict, Type: "run"}})
		suite.Errors++
	}
	suite.Tests = len(suite.Cases)
	text, err := xml.MarshalIndent(junitSuites{junitCounts: suite.junitCounts, Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	// &#xA; does not occur in attributes, only in the text inside elements. In such text, a plain
	// line feed means the same, and people can read it.
	text = bytes.ReplaceAll(text, []byte("&#xA;"), []byte("\n"))
	return writeAll(w, bytes.NewBuffer(slices.Concat([]byte(xml.Header), text, []byte("\n"))))
}

// plain returns a result as text without colours. A CI system shows it without the rest of the
// report.
func (s *shown) plain(transport string) string {
	var out bytes.Buffer
	t := &terminal{out: &out, width: 100}
	t.result(s, transport)
	return "\n" + out.String()
}
