package probe

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal/test/leaky"
)

func TestWhatWasAskedForAndNotDoneIsUnclear(t *testing.T) {
	named := func(names ...string) (all []Target) {
		for _, name := range names {
			all = append(all, Target{Method: "tools/call", Name: name, Arguments: deploy[0].Arguments})
		}
		return all
	}
	tool := &keeper{rounds: 1}
	server := toolServer(func(c toolCall) string {
		if c.Name != "deploy" {
			return `"error":{"code":-32602,"message":"unknown tool"}`
		}
		return tool.call(c)
	})
	for name, test := range map[string]struct {
		options Options
		verdict string
	}{
		"no attack was tried":             {Options{Targets: deploy, Only: []string{"other-user"}}, "no attack was tried: it needs the access tokens of two users"},
		"required and not chosen":         {Options{Targets: deploy, Only: []string{"empty"}, Require: []string{"other-user"}}, "required and not tried: other-user"},
		"a misspelt target":               {Options{Targets: named("deploy", "rolback"), Only: []string{"empty"}}, `the honest call of tool rolback failed: HTTP 200, error -32602 "unknown tool"`},
		"only a misspelt target":          {Options{Targets: named("rolback"), Only: []string{"empty"}}, `the honest call of tool rolback failed: HTTP 200, error -32602 "unknown tool"`},
		"a paged tool without a cursor":   {Options{Targets: deploy, Paged: named("deploy"), Only: []string{"empty"}}, "tool deploy gave no cursor"},
		"a paged tool that does not work": {Options{Targets: deploy, Paged: named("orders"), Only: []string{"empty"}}, "tool orders gave no cursor"},
	} {
		report := runAgainst(t, server, test.options)
		if report.Exit != ExitUnclear || !strings.HasPrefix(report.Verdict, "It could not be told: "+test.verdict) {
			t.Errorf("%s: exit %d, %s", name, report.Exit, report.Verdict)
		}
		if text := fmt.Sprint(report.Notes); strings.Contains(name, "t ") && !strings.Contains(test.verdict, "tried") && !strings.Contains(text, test.verdict) {
			t.Errorf("%s: no note says so: %s", name, text)
		}
	}
	if report := runAgainst(t, server, Options{Targets: deploy, Only: []string{"empty"}, Require: []string{"empty"}}); report.Exit != ExitNothing {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
}

func TestAFindingOutweighsWhatCouldNotBeTold(t *testing.T) {
	server, err := leaky.New("stripping")
	if err != nil {
		t.Fatal(err)
	}
	options := fullOptions(server)
	options.Only = []string{"stripped"}
	options.Targets = append(options.Targets[:1], Target{Method: "tools/call", Name: "rolback"})
	if report := runAgainst(t, server, options); report.Exit != ExitFinding {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
}

func TestAFailureSaysWhatToDo(t *testing.T) {
	needs := func(schema string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Header.Get("Mcp-Method") == "tools/list" {
				fmt.Fprintf(w, `{"result":{"tools":[{"name":"deploy","inputSchema":%s}]}}`, schema)
				return
			}
			toolServer(func(toolCall) string { return `"error":{"code":-32602,"message":"bad"}` }).ServeHTTP(w, r)
		})
	}
	status := func(code int, header, value, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		})
	}
	bare := []Target{{Method: "tools/call", Name: "deploy"}}
	for name, test := range map[string]struct {
		server  http.Handler
		options Options
		says    string
	}{
		"401":                     {status(401, "X", "", ""), Options{Targets: deploy}, "HTTP 401: give an access token with " + BearerVariable},
		"401 and JSON-RPC":        {toolServer401(), Options{Targets: deploy}, "give an access token with " + BearerVariable},
		"401 with a token":        {status(401, "X", "", ""), Options{Targets: deploy, Bearer: "alice-token"}, "HTTP 401: the server does not take the access token"},
		"404":                     {status(404, "X", "", "404 page not found"), Options{Targets: deploy}, "HTTP 404: is the path right?"},
		"307":                     {status(307, "Location", "/mcp/", ""), Options{Targets: deploy}, "/mcp/: give that URL"},
		"307 with a password":     {status(307, "Location", "http://u:s3cr3t@127.0.0.1/mcp/", ""), Options{Targets: deploy}, "HTTP 307 to http://127.0.0.1/mcp/: give that URL"},
		"307 to nowhere":          {status(307, "Location", "", ""), Options{Targets: deploy}, "HTTP 307"},
		"a page":                  {status(200, "Content-Type", "text/html; charset=utf-8", "<html>Sign in</html>"), Options{Targets: deploy}, "an HTML page"},
		"a page with an error":    {status(500, "Content-Type", "text/html", "<html>Sorry</html>"), Options{Targets: deploy}, "HTTP 500, an HTML page"},
		"arguments are missing":   {needs(`{"type":"object","required":["env"]}`), Options{Targets: bare}, "give arguments with --args"},
		"arguments may be needed": {toolServer(func(toolCall) string { return `"error":{"code":-32602,"message":"bad"}` }), Options{Targets: bare}, "give arguments with --args"},
		"arguments were given":    {needs(`{"type":"object","required":["env"]}`), Options{Targets: deploy}, `error -32602 "bad"`},
		"no such tool":            {needs(`{}`), Options{Targets: []Target{{Method: "tools/call", Name: "rolback"}}}, "the server lists no such tool"},
		"a fixture fails": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "tools/list" {
				fmt.Fprintf(w, `{"result":{"tools":[{"name":"%sx"}]}}`, fixturePrefix)
				return
			}
			toolServer(func(toolCall) string { return `"error":{"code":-32000,"message":"broken"}` }).ServeHTTP(w, r)
		}), Options{}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			report := runAgainst(t, test.server, test.options)
			if report.Exit != ExitUnclear || !strings.Contains(report.Verdict, test.says) {
				t.Errorf("exit %d, %s", report.Exit, report.Verdict)
			}
			if strings.Contains(report.Verdict, "?.") || strings.Contains(report.Verdict, "s3cr3t") || name == "arguments were given" && strings.Contains(report.Verdict, "--args") {
				t.Errorf("%s", report.Verdict)
			}
		})
	}
}

func toolServer401() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"who are you"}}`)
	})
}

func TestAnUnknownAttackIsAnsweredWithTheKnownOnes(t *testing.T) {
	err := (&Options{Only: []string{"nothing"}}).Check()
	if err == nil || !strings.Contains(err.Error(), "changed-character, truncated") || !strings.Contains(err.Error(), "oversized") {
		t.Errorf("%v", err)
	}
}

func TestNoErrorShowsThePasswordOfAURL(t *testing.T) {
	for _, address := range []string{
		"http://user:s3cr3t@127.0.0.1/", "ftp://user:s3cr3t@127.0.0.1/", "user:s3cr3t@127.0.0.1:80", "http://us er:s3cr3t@127.0.0.1/", "http://user:s3cr3t@", "//user:s3cr3t@h/%zz",
	} {
		if _, err := HTTP(address); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%v", err)
		}
	}
}

func TestAReportOfAServerThatDoesNotAnswerIsShort(t *testing.T) {
	report := runAgainst(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), Options{Targets: deploy})
	for _, format := range []string{"text", "html"} {
		text := written(t, report, format, false)
		if strings.Contains(text, "changed-character") || !strings.Contains(text, "the server does not answer") {
			t.Errorf("%s:\n%s", format, text)
		}
	}
	for _, format := range []string{"json", "junit"} {
		if text := written(t, report, format, false); !strings.Contains(text, "changed-character") {
			t.Errorf("%s, which a program reads, lacks the attacks", format)
		}
	}
}

func TestTheProbeEndsWhenItsTimeIsOver(t *testing.T) {
	server, err := leaky.New()
	if err != nil {
		t.Fatal(err)
	}
	options := fullOptions(server)
	options.MaxAge, options.MaxTime, options.Rate = 0, 300*time.Millisecond, 50
	report := runAgainst(t, server, options)
	if report.Exit != ExitUnclear || !strings.Contains(report.Verdict, "300ms") || report.Count()[Found] > 0 {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
	for _, bad := range []Options{{MaxTime: -1}, {MaxTime: time.Minute, MaxAge: time.Minute}} {
		if bad.Check() == nil {
			t.Errorf("%+v is allowed", bad)
		}
	}
	if err := (&Options{MaxAge: 2 * time.Hour}).Check(); err != nil {
		t.Errorf("without a limit, the age is added to it: %v", err)
	}
}

func TestAnAttackThatTheProbeCutsOffIsNoFinding(t *testing.T) {
	for id, budget := range map[string][2]int{"oversized": {10, 40}, "rewritten-arguments": {10, 24}} {
		step := 1
		if testing.Short() {
			step = 5 // the short tests try every fifth budget, the full tests try all
		}
		for n := budget[0]; n < budget[1]; n += step {
			report := runAgainst(t, toolServer((&keeper{rounds: 1}).call), Options{Targets: deploy, Only: []string{id}, Budget: n})
			for _, result := range report.Results {
				for _, finding := range result.Findings {
					if strings.Contains(fmt.Sprint(finding), "budget") {
						t.Fatalf("%s with a budget of %d: %s", id, n, finding.What)
					}
				}
			}
		}
	}
}

func TestEventsMayHaveAnyLineEnds(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		for _, text := range []string{
			": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n",
			"\ufeffdata:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
			"data: {\"method\":\"x\"}\n\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
		} {
			stream := strings.ReplaceAll(text, "\n", end)
			event, err := answerEvent(strings.NewReader(stream))
			if err != nil || !strings.Contains(string(event), `"id":1`) {
				t.Errorf("%q: %q, %v", stream, event, err)
			}
		}
	}
}

func TestAnEventIsReadBeforeTheStreamEnds(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		release := make(chan struct{})
		report := runAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"open"}}}%s%s`, end, end)
			w.(http.Flusher).Flush()
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}), Options{Targets: deploy, Timeout: 5 * time.Second, Only: []string{"empty"}})
		close(release)
		if report.ServerName != "open" {
			t.Errorf("%q: %s", end, report.Verdict)
		}
	}
}
