package probe

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func runAgainst(t *testing.T, handler http.Handler, options Options) *Report {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: handler} // httptest.Server waits half a second for a connection with an unread body
	go web.Serve(listener)
	defer web.Close()
	connection, err := HTTP("http://" + listener.Addr().String())
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

func verdicts(r *Report) map[string]Verdict {
	all := map[string]Verdict{}
	for _, result := range r.Results {
		all[result.ID] = result.Verdict
	}
	return all
}
