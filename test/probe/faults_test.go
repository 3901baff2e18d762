package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal/test/leaky"
)

func runAgainst(t *testing.T, handler http.Handler, options Options) *Report {
	t.Helper()
	web := httptest.NewServer(handler)
	defer web.Close()
	connection, err := HTTP(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	report, err := Run(t.Context(), connection, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAServerThatDoesNotAnswerEndsTheProbe(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	deploy := []Target{{Method: "tools/call", Name: "deploy", Arguments: `{"env":"staging"}`}}
	for name, handler := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		},
		"closes the connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"answers nonsense":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") },
		"answers null":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "null") },
		"answers an empty page": func(http.ResponseWriter, *http.Request) {},
		"begins a stream and says nothing": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-release:
			}
		},
		"sends a stream without an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
		},
		"refuses everything": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := runAgainst(t, handler, Options{Targets: deploy, Timeout: 200 * time.Millisecond})
			if report.Exit != ExitUnclear || !strings.HasPrefix(report.Verdict, "It could not be told") {
				t.Errorf("exit %d: %s", report.Exit, report.Verdict)
			}
			if report.Requests > 60 {
				t.Errorf("it sent %d requests to a server that does not answer", report.Requests)
			}
		})
	}
}

func TestAServerThatDiesInTheMiddleIsNotTakenForASoundOne(t *testing.T) {
	for _, after := range []int64{15, 40, 200} {
		server, err := leaky.New()
		if err != nil {
			t.Fatal(err)
		}
		var count atomic.Int64
		report := runAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if count.Add(1) > after {
				panic(http.ErrAbortHandler)
			}
			server.ServeHTTP(w, r)
		}), fullOptions(server))
		if report.Exit != ExitUnclear {
			t.Errorf("after %d requests: exit %d, %s", after, report.Exit, report.Verdict)
		}
	}
}

func TestABudgetIsKept(t *testing.T) {
	server, err := leaky.New()
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int64
	options := fullOptions(server)
	options.Budget = 300
	report := runAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		server.ServeHTTP(w, r)
	}), options)
	if count.Load() > 300 || report.Exit != ExitUnclear || !strings.Contains(report.Verdict, "budget") {
		t.Errorf("%d requests, exit %d: %s", count.Load(), report.Exit, report.Verdict)
	}
}

func TestAnAttackThatIsRequiredAndNotTriedIsUnclear(t *testing.T) {
	server, err := leaky.New()
	if err != nil {
		t.Fatal(err)
	}
	options := fullOptions(server)
	options.OtherBearer = ""
	options.Require = []string{"other-user"}
	if report := runAgainst(t, server, options); report.Exit != ExitUnclear || !strings.Contains(report.Verdict, "other-user") {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
}

func TestAnAcceptedRiskIsNoFindingAndIsNotSilent(t *testing.T) {
	server, err := leaky.New("stripping")
	if err != nil {
		t.Fatal(err)
	}
	options := fullOptions(server)
	for _, target := range options.Targets {
		options.Unsolicited = append(options.Unsolicited, target.Name)
	}
	report := runAgainst(t, server, options)
	if report.Exit != ExitNothing || verdicts(report)["stripped"] != AcceptedRisk || !strings.Contains(report.Verdict, "accepted risk") {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
	options.Unsolicited = options.Unsolicited[1:]
	if report := runAgainst(t, server, options); report.Exit != ExitFinding {
		t.Errorf("a tool that was not named is exempted too: %s", report.Verdict)
	}
}

func TestNoReportShowsAnAccessToken(t *testing.T) {
	server, err := leaky.New("plaintext", "oracle")
	if err != nil {
		t.Fatal(err)
	}
	report := runAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		server.ServeHTTP(w, r)
	}), fullOptions(server))
	for _, format := range Formats() {
		var text strings.Builder
		if err := report.Write(&text, format, false); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"alice-token", "bob-token"} {
			if strings.Contains(text.String(), secret) {
				t.Errorf("%s shows %s", format, secret)
			}
		}
	}
}

func TestARemoteHostMustBeAllowed(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:1/mcp": true, "http://localhost:1": true, "http://[::1]:1": true,
		"http://192.0.2.1/mcp": false, "https://example.com/mcp": false, "http://127.0.0.1.example.com/": false, "http://localhost.example.com": false,
		"http://user:secret@127.0.0.1/": false, "ftp://127.0.0.1": false, "127.0.0.1:80": false, "": false,
	} {
		if _, err := HTTP(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := HTTP("https://example.com/mcp", "example.com"); err != nil {
		t.Error(err)
	}
}

func TestACommandThatEndsIsReported(t *testing.T) {
	if os.Getenv("PROBE_TEST_CHILD") == "ends" {
		os.Exit(3)
	}
	t.Setenv("PROBE_TEST_CHILD", "ends")
	server, err := Stdio(nil, os.Args[0], "-test.run", "^TestACommandThatEndsIsReported$")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	report, err := Run(t.Context(), server, Options{Targets: []Target{{Method: "tools/call", Name: "deploy"}}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if report.Exit != ExitUnclear || report.Problem == "" {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
	if _, err := Stdio(nil, "/no/such/command"); err == nil {
		t.Error("a command that does not exist was started")
	}
}
