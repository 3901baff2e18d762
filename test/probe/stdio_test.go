package probe

import (
	"context"
	"io"
	"maps"
	"testing"

	"github.com/tripseal/tripseal/test/leaky"
)

// attackStdio runs the probe against the test server with these holes. Two pipes take the place
// of standard input and output.
func attackStdio(t *testing.T, holes ...string) *Report {
	t.Helper()
	server, err := leaky.New(holes...)
	if err != nil {
		t.Fatal(err)
	}
	options := fullOptions(server)
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(context.Background(), toServer, fromServer)
		toServer.Close()
		fromServer.Close()
	}()
	p := newPipe("leaky", in, out)
	p.end = func() error {
		in.Close()
		<-done
		return nil
	}
	defer p.Close()
	report, err := Run(t.Context(), p, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func verdicts(r *Report) map[string]Verdict {
	all := map[string]Verdict{}
	for _, result := range r.Results {
		all[result.ID] = result.Verdict
	}
	return all
}

func TestStdioAndHTTPGiveTheSameVerdicts(t *testing.T) {
	for _, holes := range [][]string{nil, {"plaintext"}, {"hmac-unbound"}, {"stripping", "echo"}, {"unsigned-cursor"}, {"unbound-arguments", "oracle"}} {
		if (testing.Short() || raceEnabled) && len(holes) != 1 {
			continue
		}
		web, line := verdicts(attackHole(t, holes...)), verdicts(attackStdio(t, holes...))
		for _, id := range []string{"old-version", "header-mismatch", "other-user", "cursor-other-user"} {
			if line[id] != NotTried {
				t.Errorf("%v: %s over stdio is %s, but there are no headers and no second user", holes, id, line[id])
			}
			delete(web, id)
			delete(line, id)
		}
		if !maps.Equal(web, line) {
			for id := range web {
				if web[id] != line[id] {
					t.Errorf("%v: %s is %s over HTTP and %s over stdio", holes, id, web[id], line[id])
				}
			}
		}
	}
}

func TestTheSameServerGetsTheSameVerdicts(t *testing.T) {
	for _, hole := range []string{"base64-json", "oracle"} {
		if a, b := verdicts(attackHole(t, hole)), verdicts(attackHole(t, hole)); !maps.Equal(a, b) {
			t.Errorf("%s: %v, then %v", hole, a, b)
		}
	}
}
