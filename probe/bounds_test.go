package probe

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// keepsBounds checks that neither an attack nor the whole run sent more requests than the probe
// says beforehand.
func keepsBounds(t *testing.T, report *Report, options Options) {
	t.Helper()
	sent := 0
	for _, result := range report.Results {
		sent += result.Requests
		if most := result.maxRequests(report.rounds, len(report.Cursors)); result.Requests > most {
			t.Errorf("%s sent %d requests, and says at most %d", result.ID, result.Requests, most)
		}
	}
	if looked, most := report.Requests-sent, maxLookRequests(report.rounds, len(options.Paged)); looked > most {
		t.Errorf("%d requests to look at the server, at most %d", looked, most)
	}
	if asks := report.rounds; report.Requests > options.Requests("", max(1, asks)) {
		t.Errorf("%d requests in all", report.Requests)
	}
}

func TestNoAttackSendsMoreThanItSays(t *testing.T) {
	choices := make([]string, 500)
	for i := range choices {
		choices[i] = fmt.Sprintf(`"choice%d"`, i)
	}
	for name, tool := range map[string]*keeper{
		"asks once":                      {rounds: 1},
		"asks eight times":               {rounds: 8},
		"spends, and asks three times":   {rounds: 3, spends: true},
		"64 questions, and spends":       {rounds: 2, asks: 64, spends: true},
		"a state of many parts, spends":  {rounds: 1, parts: 200, spends: true},
		"choices that it does not take":  {rounds: 1, only: `{"env":"staging"}`},
		"many arguments and no other":    {rounds: 1, only: wide(60, `"staging"`)},
		"many arguments, takes anything": {rounds: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := Options{Targets: []Target{deploy[0], {Method: "tools/call", Name: "rollback", Arguments: deploy[0].Arguments}}, Bearer: "alice-token", OtherBearer: "bob-token", SingleUse: true, Timeout: 5 * time.Second}
			if strings.HasPrefix(name, "many") {
				options.Targets = []Target{{Method: "tools/call", Name: "deploy", Arguments: wide(60, `"staging"`)}}
			}
			inner := toolServer(tool.call)
			report := runAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == "tools/list" {
					fmt.Fprintf(w, `{"result":{"tools":[{"name":"deploy","inputSchema":{"type":"object","properties":{"env":{"type":"string","enum":[%s]}}}}]}}`, strings.Join(choices, ","))
					return
				}
				inner.ServeHTTP(w, r)
			}), options)
			if len(report.Targets) == 0 {
				t.Fatalf("nothing was attacked: %s", report.Verdict)
			}
			keepsBounds(t, report, options)
		})
	}
}
