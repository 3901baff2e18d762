package probe_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/probe"
)

// attackStdio runs the probe against the test server with these holes, as a process that speaks stdio.
func attackStdio(t *testing.T, options probe.Options, holes ...string) *probe.Report {
	t.Helper()
	t.Setenv(serveVariable, strings.Join(holes, " "))
	server, err := probe.Stdio(os.Stderr, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	report, err := probe.Run(t.Context(), server, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestStdioAndHTTPGiveTheSameVerdicts(t *testing.T) {
	for _, holes := range [][]string{nil, {"plaintext"}, {"stripping", "echo", "unsigned-cursor"}} {
		server := newServer(t, holes...)
		options := fullOptions(server)
		options.Targets = options.Targets[2:]
		options.MaxAge = 0 // the clock of the process is its own
		web, line := verdicts(run(t, server, options)), verdicts(attackStdio(t, options, holes...))
		for _, id := range []string{"old-version", "header-mismatch", "other-user", "cursor-other-user"} {
			if line[id] != probe.NotTried {
				t.Errorf("%v: %s over stdio is %s, but there are no headers and no second user", holes, id, line[id])
			}
			delete(web, id)
			delete(line, id)
		}
		if !maps.Equal(web, line) {
			t.Errorf("%v: over HTTP %v, over stdio %v", holes, web, line)
		}
	}
}
