package probe

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
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

func TestAFailureSaysWhatToDo(t *testing.T) {
	status := func(code int, header, value, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		})
	}
	for _, test := range []struct {
		server http.Handler
		says   string
	}{
		{status(401, "X", "", ""), "HTTP 401"},
		{status(404, "X", "", "404 page not found"), "HTTP 404"},
		{status(307, "Location", "http://u:s3cr3t@127.0.0.1/mcp/", ""), "HTTP 307 to http://127.0.0.1/mcp/: give that URL"},
		{status(500, "Content-Type", "text/html", "<html>Sorry</html>"), "HTTP 500"},
	} {
		report := runAgainst(t, test.server, Options{Targets: deploy})
		if report.Exit != ExitUnclear || !strings.Contains(report.Verdict, test.says) {
			t.Errorf("exit %d, %s", report.Exit, report.Verdict)
		}
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

func TestAnAttackThatTheProbeCutsOffIsNoFinding(t *testing.T) {
	for id, budget := range map[string][2]int{"oversized": {10, 40}, "rewritten-arguments": {10, 24}} {
		step := 1
		if testing.Short() {
			step = 5 // the short tests try every fifth budget, the full tests try all
		}
		for n := budget[0]; n < budget[1]; n += step {
			report := runAgainst(t, toolServer((&keeper{rounds: 1}).call),
				Options{Targets: deploy, Only: []string{id}, Budget: n, sleep: func(time.Duration) {}})
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

func TestEventsMayHaveEitherLineEnd(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
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
	for _, end := range []string{"\n", "\r\n"} {
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
