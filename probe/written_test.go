package probe

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample returns a report with every verdict. The report has serverText at every place where a
// server can put a text.
func sample(serverText string) *Report {
	p := probeOf("http://127.0.0.1:8080/mcp")
	p.OtherBearer = "secret-token-of-another-user"
	r := &Report{
		Server: p.server.name(), ServerName: "deployer 1.4.2" + serverText, Transport: "http", Requests: 1284,
		Targets: []string{"tool deploy" + serverText, "tool transfer_funds", "prompt review"}, Cursors: []string{"tools/list", "tool search_orders" + serverText},
		Notes: []string{"resource file:///etc/motd: an honest request was not answered as it should be: HTTP 200, error -32002 \"Resource not found" + serverText + "\""},
	}
	state := "v1.eyJzdGVwIjoyLCJvcmRlciI6eyJpZCI6IjQ3MTEiLCJhbW91bnQiOjEyMDB9LCJ1c2VyIjoiYWxpY2UiLCJleHAiOjE3ODUyODgwMDB9.q83vEjRWeJA" + serverText
	call := Target{Method: "tools/call", Name: "deploy"}.call(`{"environment":"production","version":"2026.7.1"}`)
	retry := call.with("requestState", quoted(state)).with("inputResponses", `{"confirm":{"action":"accept","content":{"ok":true}}}`)
	opening := exchange{message: call, id: 41, reply: &reply{status: 200, raw: []byte(
		`{"jsonrpc":"2.0","id":41,"result":{"resultType":"input_required","inputRequests":{"confirm":{"method":"elicitation/create","params":{"mode":"form","message":"Deploy 2026.7.1 to production?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}},"requestState":` + quoted(state) + `}}`)}}
	through := func(m message) exchange {
		return exchange{message: m, id: 42, reply: &reply{status: 200, raw: []byte(`{"jsonrpc":"2.0","id":42,"result":{"resultType":"complete","content":[{"type":"text","text":"Deployed 2026.7.1 to production.` + serverText + `"}]}}`)}}
	}
	refused := func(text string) exchange {
		return exchange{message: retry.with("requestState", quoted(state[:20])), id: 43, reply: &reply{status: 400, raw: []byte(`{"jsonrpc":"2.0","id":43,"error":{"code":-32602,"message":"` + text + `"}}`)}}
	}
	special := map[string]Result{
		"changed-character": {Verdict: Found, Findings: []Finding{
			p.finding("tool deploy", "character 3 of 120: \"e\" became \"f\""+serverText, []exchange{opening, through(retry)}),
			p.finding("tool deploy", "character 57 of 120: \"Z\" became \"Y\"", []exchange{opening, through(retry.with("requestState", quoted("57"+state)))}),
			p.finding("tool transfer_funds", "character 101 of 120: \"4\" became \"5\"", []exchange{opening, through(retry.with("requestState", quoted("101"+state)))}),
			p.finding("tool transfer_funds", "character 102 of 120: \"0\" became \"1\"", []exchange{opening, through(retry.with("requestState", quoted("102"+state)))}),
		}, Outcomes: map[string]int{"rejected": 92, "completed": 4}},
		"other-arguments": {Verdict: Found, Findings: []Finding{
			p.finding("tool deploy", "\"environment\" is \"production\" and was \"staging\" when the user confirmed", []exchange{opening, through(retry.with("arguments", `{"environment":"production","version":"2026.7.1","note":"it's"}`))}),
		}, Outcomes: map[string]int{"completed": 1, "rejected": 5}},
		"other-user": {Verdict: Found, Findings: []Finding{
			p.finding("tool deploy", "sent by the other user", []exchange{opening, through(retry.sentBy(otherUser))}),
		}, Outcomes: map[string]int{"completed": 1, "refused before the check": 1}},
		"oracle": {Verdict: Found, Findings: []Finding{
			p.finding("tool deploy", `two refusals differ: HTTP 400, error -32602, message "invalid base64", data  and HTTP 400, error -32602, message "invalid signature", data`, []exchange{refused("invalid base64"), refused("invalid signature" + serverText)}),
		}, Outcomes: map[string]int{"rejected": 260}},
		"cursor-made-up": {Verdict: Found, Why: "tool search_orders: there was no answer in time", Findings: []Finding{
			p.finding("tools/list", "the cursor \"MTA=\", which is 10 in base64"+serverText, []exchange{through(message{method: "tools/list"}.with("cursor", `"MTA="`))}),
		}, Outcomes: map[string]int{"completed": 2, "rejected": 9, "no answer": 1}},
		"rounded-numbers":     {Verdict: Unclear, Why: "tool transfer_funds: the state that was attacked no longer worked for an honest retry: HTTP 400, error -32602 \"invalid params" + serverText + "\"", Outcomes: map[string]int{"rejected": 4}},
		"crossed":             {Verdict: Unclear, Why: "the honest call before it failed: there was no answer in time"},
		"stripped":            {Verdict: AcceptedRisk, Findings: []Finding{p.finding("tool deploy", "the answers with the first call, without a state", []exchange{through(retry.without("requestState"))})}, Outcomes: map[string]int{"completed": 1}},
		"used-again":          {Verdict: Information, Findings: []Finding{p.finding("tool deploy", "it works a second time"+serverText+"; the specification demands single use only for states that must be used at most once", []exchange{opening, through(retry), through(retry)})}, Outcomes: map[string]int{"completed": 1}},
		"expired":             {Verdict: NotTried, Why: "it needs the age after which a state must be refused"},
		"cursor-other-user":   {Verdict: NotTried, Why: "it needs the access tokens of two users"},
		"look-alikes":         {Verdict: NotTried, Why: "there was nothing to send"},
		"rewritten-arguments": {Verdict: NotTried, Why: "there was nothing to send"},
		"header-mismatch":     {Verdict: Early, Why: "the server refused every variant before it can have looked at the state" + serverText, Outcomes: map[string]int{"refused before the check": 6}},
	}
	for i, a := range Attacks() {
		result, ok := special[a.ID]
		if !ok {
			result = Result{Verdict: Refused, Outcomes: map[string]int{"rejected": 7 + 5*i%31, "asked": i % 3, "a tool's error": 2}}
		}
		result.Attack, result.Requests = a, 9+i
		r.Results = append(r.Results, result)
	}
	r.judge(nil)
	return r
}

// dirty returns a report that contains a text of the server unchanged. Only the writers can make
// this text harmless.
func dirty(serverText string) *Report {
	r := sample(serverText)
	r.Results = r.Results[:r.Count()[Found]+r.Count()[Unclear]+r.Count()[AcceptedRisk]+r.Count()[Information]+1]
	for i := range r.Results {
		r.Results[i].Why += " it said " + serverText
		for j := range r.Results[i].Findings {
			f := &r.Results[i].Findings[j]
			f.Target += serverText
			for k := range f.Exchanges {
				f.Exchanges[k].Answer += serverText
				f.Exchanges[k].Curl += serverText
			}
		}
	}
	return r
}

func written(t testing.TB, r *Report, format string, colour bool) string {
	t.Helper()
	var out strings.Builder
	if err := r.Write(&out, format, colour); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var (
	tagNames = regexp.MustCompile(`<[a-zA-Z/!?][^\s>]*`)
	colours  = regexp.MustCompile("\x1b\\[[0-9;]+m")
)

// checkWritten checks what must hold for the four formats, whatever text the server sent.
func checkWritten(t testing.TB, serverText string) {
	t.Helper()
	r, again, polite := dirty(serverText), dirty(serverText), dirty("x")
	text := map[string]string{}
	for _, format := range Formats() {
		text[format] = written(t, r, format, false)
		if i := strings.IndexFunc(text[format], func(char rune) bool { return char != '\n' && char != '\t' && moves(char) }); i >= 0 {
			t.Errorf("%s has a character that acts on what shows it: %q", format, text[format][i:min(len(text[format]), i+20)])
		}
		if written(t, again, format, false) != text[format] {
			t.Errorf("%s differs from one time to the next", format)
		}
	}
	for _, format := range []string{"html", "junit"} {
		if !slices.Equal(tagNames.FindAllString(text[format], -1), tagNames.FindAllString(written(t, polite, format, false), -1)) {
			t.Errorf("the server's words are tags of %s", format)
		}
	}
	if err := xml.Unmarshal([]byte(text["junit"]), new(junitSuites)); err != nil {
		t.Errorf("JUnit: %v", err)
	}
	var back Report
	if err := json.Unmarshal([]byte(text["json"]), &back); err != nil {
		t.Errorf("JSON: %v", err)
	} else if !reflect.DeepEqual(decoded(t, written(t, &back, "json", false)), decoded(t, text["json"])) {
		t.Error("JSON does not read back as what was written")
	}
	if colours.ReplaceAllString(written(t, r, "text", true), "") != text["text"] {
		t.Error("colours change more than the colour")
	}
}

func decoded(t testing.TB, document string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// FuzzWriters lets a server write any text into all formats of the report.
func FuzzWriters(f *testing.F) {
	for _, serverText := range append(hostile, strings.Join(hostile, ""), "\n5 classes of attacks got through.\n", "&#xA;",
		"\u05e9\u05dc\u05d5\u05dd", strings.Repeat("漢", 500)) {
		f.Add(serverText)
	}
	f.Fuzz(func(t *testing.T, serverText string) { checkWritten(t, serverText) })
}

func TestAnswerCannotPassForAPartOfTheText(t *testing.T) {
	text := written(t, dirty("\nNothing got through.\n\nIN ALL\n"), "text", false)
	if strings.Contains(text, "\nNothing got through.\n") || strings.Count(text, "\nIN ALL\n") != 1 {
		t.Error("a line of the server's looks like one of the report")
	}
}

func TestRequestOfAFindingIsWhole(t *testing.T) {
	r := sample(strings.Repeat("0123456789", 800))
	for _, result := range r.Results {
		for _, f := range result.Findings[:min(1, len(result.Findings))] {
			for _, e := range f.Exchanges {
				if want := strings.ReplaceAll(e.Curl, "\n", "\n    "); !strings.Contains(written(t, r, "text", false), "\n    "+want+"\n") {
					t.Errorf("text lacks a request of %s", result.ID)
				}
				var back Report
				json.Unmarshal([]byte(written(t, r, "json", false)), &back)
				if !slices.ContainsFunc(back.Results, func(b Result) bool { return len(b.Findings) > 0 && slices.Contains(b.Findings[0].Exchanges, e) }) {
					t.Errorf("json lacks a request of %s", result.ID)
				}
				if escaped := htmlEscaped(e.Curl); !strings.Contains(written(t, r, "html", false), "<code>"+escaped+"</code>") {
					t.Errorf("html lacks a request of %s", result.ID)
				}
				var suites junitSuites
				xml.Unmarshal([]byte(written(t, r, "junit", false)), &suites)
				if !slices.ContainsFunc(suites.Suite.Cases, func(c junitCase) bool {
					return strings.Contains(c.all(), "\n    "+strings.ReplaceAll(e.Curl, "\n", "\n    ")+"\n")
				}) {
					t.Errorf("junit lacks a request of %s", result.ID)
				}
			}
		}
	}
}

func htmlEscaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace(text)
}

func (c junitCase) all() string {
	text := c.Out
	for _, why := range []*junitWhy{c.Failure, c.Error, c.Skipped} {
		if why != nil {
			text += why.Message + why.Text
		}
	}
	return text
}

func TestReportIsBounded(t *testing.T) {
	r := sample("")
	size := map[string]int{}
	for _, format := range Formats() {
		size[format] = len(written(t, r, format, false))
	}
	long := strings.Repeat("long ", 1<<18)
	r.ServerName, r.Problem, r.Notes, r.Targets, r.Cursors = long, long, slices.Repeat([]string{long}, 1000), slices.Repeat([]string{long}, 1000), slices.Repeat([]string{long}, 1000)
	for i := range r.Results {
		result := &r.Results[i]
		result.Why = long
		for j := range result.Findings {
			result.Findings[j].What, result.Findings[j].Target = long, long
			for k := range result.Findings[j].Exchanges {
				result.Findings[j].Exchanges[k].Answer = long
			}
		}
		if len(result.Findings) > 0 {
			result.Findings = slices.Repeat(result.Findings, 500)
		}
	}
	for _, format := range []string{"text", "html", "junit"} {
		text := written(t, r, format, false)
		if len(text) > 12*size[format] {
			t.Errorf("%s: %d bytes, and %d of an ordinary server", format, len(text), size[format])
		}
		if !strings.Contains(text, "bytes left out") || !strings.Contains(text, "more findings") {
			t.Errorf("%s does not say what it left out", format)
		}
	}
}

func TestPageLoadsNothing(t *testing.T) {
	page := written(t, sample(`<img src="https://example.com/x"> url(https://example.com/y)`), "html", false)
	for _, tag := range regexp.MustCompile(`<[a-zA-Z][^>]*>`).FindAllString(page, -1) {
		for _, link := range regexp.MustCompile(`\s(href|src|srcset|action|data|poster|background|style|on[a-z]+)="?([^">]*)`).FindAllStringSubmatch(tag, -1) {
			if link[1] != "href" || !strings.HasPrefix(link[2], "#") && !(strings.HasPrefix(link[2], specification+"/") && strings.Contains(tag, `rel="noreferrer"`)) {
				t.Errorf("the page has %s", tag)
			}
		}
		if regexp.MustCompile(`^<(script|link|img|iframe|object|embed|base|form|svg)\b`).MatchString(tag) {
			t.Errorf("the page has %s", tag)
		}
	}
	style := page[strings.Index(page, "<style>"):strings.Index(page, "</style>")]
	if regexp.MustCompile(`url\(|@import|image-set|//`).MatchString(style) {
		t.Error("the style names a resource")
	}
	if !strings.Contains(page, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'`) {
		t.Error("the page has no strict policy")
	}
}

// ended returns the report of a run in which nothing could be tried.
func ended() *Report {
	r := &Report{Server: "http://127.0.0.1:9/mcp", Transport: "http", Problem: "the server does not answer"}
	for _, a := range Attacks() {
		r.Results = append(r.Results, Result{Attack: a, Verdict: NotTried, Why: r.Problem})
	}
	r.judge(nil)
	return r
}

func TestEveryAttackAndReasonIsInEveryFormat(t *testing.T) {
	r := sample("")
	for _, format := range Formats() {
		text := written(t, r, format, false)
		for _, result := range r.Results {
			if !strings.Contains(text, result.ID) {
				t.Errorf("%s lacks %s", format, result.ID)
			}
			if result.Verdict == NotTried && !strings.Contains(text, result.Why) {
				t.Errorf("%s does not say %q", format, result.Why)
			}
		}
	}
}

func TestJUnitHasACaseForEveryAttack(t *testing.T) {
	r := sample("")
	var suites junitSuites
	if err := xml.Unmarshal([]byte(written(t, r, "junit", false)), &suites); err != nil {
		t.Fatal(err)
	}
	cases, count := suites.Suite.Cases, r.Count()
	if len(cases) != len(r.Results) || suites.Tests != len(cases) || suites.Failures != count[Found] || suites.Errors != count[Unclear] || suites.Skipped != count[NotTried]+count[Early] {
		t.Errorf("%+v", suites.junitCounts)
	}
	for i, c := range cases {
		v := r.Results[i].Verdict
		if c.Name != r.Results[i].ID || (c.Failure != nil) != (v == Found) || (c.Error != nil) != (v == Unclear) ||
			(c.Skipped != nil) != (v == NotTried || v == Early) || (c.Out != "") != (v == AcceptedRisk || v == Information) {
			t.Errorf("%s, %s: %+v", r.Results[i].ID, v, c)
		}
	}
}

func TestJUnitOfAFailedRunHasAnError(t *testing.T) {
	missing := ended()
	missing.Problem, missing.Targets = "", []string{"tool x"}
	missing.judge([]string{"expired"})
	unknown := sample("")
	unknown.Results = []Result{{Attack: attacks[0], Verdict: "another"}}
	for _, r := range []*Report{ended(), missing, unknown} {
		var suites junitSuites
		if err := xml.Unmarshal([]byte(written(t, r, "junit", false)), &suites); err != nil || suites.Errors != 1 || suites.Suite.Errors != 1 || suites.Tests != len(suites.Suite.Cases) {
			t.Errorf("%s: %+v, %v", r.Verdict, suites.junitCounts, err)
		}
	}
}

func TestJSONHasStableNames(t *testing.T) {
	for _, r := range []*Report{sample(""), {}, {Results: []Result{{Verdict: Refused, Findings: []Finding{{}}}}}} {
		text := written(t, r, "json", false)
		if !strings.HasPrefix(text, "{\n  \"format\": 1,\n") {
			t.Error("the format is not the first member")
		}
		if strings.Contains(text, ": null") {
			t.Error("an empty list is null")
		}
		for _, name := range regexp.MustCompile(`(?m)^\s*"([^"]*)":`).FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`^[a-z][a-zA-Z]*$`).MatchString(name[1]) && !slices.Contains([]Verdict{AcceptedRisk, NotTried, Early}, Verdict(name[1])) && !slices.Contains([]string{"no answer", "refused before the check", "a tool's error"}, name[1]) {
				t.Errorf("a member is called %q", name[1])
			}
		}
	}
}

func TestUnknownFormatIsRefusedWithAList(t *testing.T) {
	var out bytes.Buffer
	err := new(Report).Write(&out, "pdf", false)
	if err == nil || out.Len() > 0 {
		t.Fatalf("%v, %d bytes", err, out.Len())
	}
	for _, name := range Formats() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFailedWriteIsReported(t *testing.T) {
	for _, format := range Formats() {
		if err := sample("").Write(fullDisk{}, format, false); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
