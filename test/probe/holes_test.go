package probe

import (
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal/test/leaky"
)

// attacksByHole lists, for each hole of the test server, the attacks that must find it. The list
// was written by hand before the probe first ran. If a run differs from the list, an attack or the
// server has a fault.
var attacksByHole = map[string]string{
	"unsigned-prefix":     "changed-character",
	"short-mac":           "truncated",
	"suffix-ignored":      "extended",
	"lenient-base64":      "respelled",
	"coerced-types":       "other-type",
	"debug-state":         "made-up",
	"empty-unchecked":     "empty",
	"signed-plaintext":    "readable",
	"alg-none":            "edited",
	"stripping":           "stripped",
	"later-answers":       "early-answers",
	"any-key":             "wrong-keys",
	"any-kind":            "wrong-kind",
	"null-answers":        "null-answer",
	"shared-tools":        "other-target",
	"unbound-arguments":   "other-arguments rounded-numbers look-alikes",
	"subset-arguments":    "other-arguments",
	"raw-digest":          "rewritten-arguments",
	"floats":              "rounded-numbers",
	"folded-arguments":    "look-alikes",
	"replaced-utf8":       "invalid-utf8",
	"first-member":        "duplicate-members",
	"case-blind":          "other-spellings",
	"version-downgrade":   "old-version",
	"headers-unchecked":   "header-mismatch",
	"any-method":          "other-methods",
	"shared-users":        "other-user",
	"no-expiry":           "expired",
	"reusable":            "used-again forked",
	"racy-use":            "used-again",
	"use-by-answer":       "forked",
	"no-limits":           "oversized",
	"cursor-prefix":       "cursor-changed",
	"cursor-numbers":      "cursor-made-up",
	"cursor-shared-lists": "cursor-other-list",
	"cursor-shared-users": "cursor-other-user",
	"one-token":           "crossed",
	"oracle":              "oracle",
	"echo":                "echoed-state",
	"undeclared":          "undeclared-question",

	// These are mistakes of real servers.
	"plaintext": "changed-character truncated extended respelled made-up readable edited early-answers other-target other-arguments " +
		"rounded-numbers look-alikes other-user expired used-again forked crossed",
	"base64-json": "changed-character respelled made-up readable edited early-answers other-target other-arguments " +
		"rounded-numbers look-alikes other-user expired used-again forked",
	"hmac-unbound":    "readable other-target other-arguments rounded-numbers look-alikes other-user expired used-again forked",
	"unsigned-cursor": "cursor-changed cursor-made-up cursor-other-list cursor-other-user",
}

// fullOptions returns options that make every attack possible on the test server.
func fullOptions(server *leaky.Server) Options {
	const release = `{"env":"staging","build":7}`
	var mu sync.Mutex
	var ahead time.Duration
	server.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	return Options{
		Targets: []Target{
			{Method: "tools/call", Name: "deploy", Arguments: release},
			{Method: "tools/call", Name: "rollback", Arguments: release},
			{Method: "tools/call", Name: "book", Arguments: `{"seat":"12A"}`},
			{Method: "prompts/get", Name: "greet", Arguments: `{"who":"somebody"}`},
			{Method: "resources/read", Name: "note:///1"},
		},
		Paged:  []Target{{Method: "tools/call", Name: "orders", Arguments: `{"status":"open"}`}},
		Bearer: "alice-token", OtherBearer: "bob-token",
		SingleUse: true, MaxAge: time.Hour,
		Timeout: 5 * time.Second,
		sleep: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			ahead += d
		},
	}
}

// attackHole runs the probe against the test server with these holes.
func attackHole(t *testing.T, holes ...string) *Report {
	t.Helper()
	server, err := leaky.New(holes...)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	defer web.Close()
	connection, err := HTTP(web.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	report, err := Run(t.Context(), connection, fullOptions(server))
	if err != nil {
		t.Fatal(err)
	}
	keepsBounds(t, report, fullOptions(server))
	return report
}

// found returns the ids of the attacks that got through, sorted.
func (r *Report) found() (all []string) {
	for _, result := range r.Results {
		if result.Verdict == Found {
			all = append(all, result.ID)
		}
	}
	slices.Sort(all)
	return all
}

func TestEveryHoleIsFoundByExactlyTheAttacksThatShouldFindIt(t *testing.T) {
	for i, hole := range leaky.Holes() {
		if (testing.Short() || raceEnabled) && i%9 != 0 {
			continue // all holes together take a minute; the full tests try them
		}
		t.Run(hole.Name, func(t *testing.T) {
			t.Parallel()
			report := attackHole(t, hole.Name)
			want := strings.Fields(attacksByHole[hole.Name])
			slices.Sort(want)
			if got := report.found(); !slices.Equal(got, want) {
				t.Errorf("found by %v, want %v", got, want)
				for _, result := range report.Results {
					for _, finding := range result.Findings {
						t.Logf("%s: %s: %s", result.ID, finding.Target, finding.What)
					}
					if result.Verdict == Unclear {
						t.Logf("%s: unclear: %s", result.ID, result.Why)
					}
				}
			}
		})
	}
}

func TestNothingGetsThroughOnASoundServer(t *testing.T) {
	report := attackHole(t)
	if report.Exit != ExitNothing {
		t.Errorf("%s", report.Verdict)
	}
	for _, result := range report.Results {
		if result.Verdict != Refused && result.Verdict != Early && result.ID != "edited" { // there is nothing to edit, because a sound state is not readable
			t.Errorf("%s: %s %s %v", result.ID, result.Verdict, result.Why, result.Findings)
		}
	}
}

func TestEveryAttackIsTheOnlyFinderOfSomeHole(t *testing.T) {
	only := map[string]bool{}
	for _, by := range attacksByHole {
		only[by] = true
	}
	for _, a := range Attacks() {
		if !only[a.ID] {
			t.Errorf("%s is the only finder of no hole", a.ID)
		}
	}
}
