package probe_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal/probe"
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
	"untyped":             "untyped-result",
	"undeclared":          "undeclared-question",

	// These are mistakes of real servers.
	"plaintext": "changed-character truncated extended respelled made-up readable edited early-answers " +
		"other-target other-arguments rounded-numbers look-alikes other-user expired used-again forked crossed",
	"base64-json": "changed-character respelled made-up readable edited early-answers other-target other-arguments " +
		"rounded-numbers look-alikes other-user expired used-again forked",
	"hmac-unbound": "readable other-target other-arguments rounded-numbers look-alikes other-user expired " +
		"used-again forked",
	"unsigned-cursor": "cursor-changed cursor-made-up cursor-other-list cursor-other-user",
}

// attackHole runs the probe against the test server with these holes. No attack may send more requests than
// the owner of the server was told.
func attackHole(t *testing.T, holes ...string) *probe.Report {
	t.Helper()
	server := newServer(t, holes...)
	options := fullOptions(server)
	// The sound server is attacked at all its targets. A hole needs two tools, and one that is about a second
	// question needs the tool that asks twice.
	if len(holes) > 0 && !strings.Contains(attacksByHole[holes[0]], "early-answers") {
		options.Targets = options.Targets[:2]
	} else if len(holes) > 0 {
		options.Targets = options.Targets[:3]
	}
	if slices.Contains(holes, "racy-use") {
		server.Pause = untilTwoMeet(&options)
	}
	report := run(t, server, options)
	for _, result := range report.Results {
		if most := options.Requests(result.ID, 2); result.Requests > most {
			t.Errorf("%s sent %d requests, and says at most %d", result.ID, result.Requests, most)
		}
	}
	return report
}

// untilTwoMeet returns a function that returns when two callers are in it. A caller who stays alone leaves
// after a second, and at once in all attacks but the one that sends several requests at the same moment.
func untilTwoMeet(options *probe.Options) func() {
	var racing atomic.Bool
	progress := options.Progress
	options.Progress = func(p probe.Progress) {
		progress(p)
		racing.Store(p.Attack == "used-again")
	}
	options.Targets = options.Targets[:1]
	meet := make(chan struct{})
	return func() {
		if !racing.Load() {
			return
		}
		select {
		case meet <- struct{}{}:
		case <-meet:
		case <-time.After(time.Second):
		}
	}
}

func TestEveryHoleIsFoundByExactlyTheAttacksThatShouldFindIt(t *testing.T) {
	for i, hole := range leaky.Holes() {
		if testing.Short() && i%9 != 0 {
			continue
		}
		t.Run(hole, func(t *testing.T) {
			t.Parallel()
			report := attackHole(t, hole)
			want := strings.Fields(attacksByHole[hole])
			slices.Sort(want)
			if got := found(report); !slices.Equal(got, want) {
				t.Errorf("found by %v, want %v", got, want)
				for _, result := range report.Results {
					for _, finding := range result.Findings {
						t.Logf("%s: %s: %s", result.ID, finding.Target, finding.What)
					}
					if result.Verdict == probe.Unclear {
						t.Logf("%s: unclear: %s", result.ID, result.Why)
					}
				}
			}
		})
	}
}

func TestNothingGetsThroughOnASoundServer(t *testing.T) {
	report := attackHole(t)
	if report.Exit != probe.ExitNothing {
		t.Errorf("%s", report.Verdict)
	}
	for _, result := range report.Results {
		// There is nothing to edit, because a sound state is not readable.
		if result.Verdict != probe.Refused && result.Verdict != probe.Early && result.ID != "edited" {
			t.Errorf("%s: %s %s %v", result.ID, result.Verdict, result.Why, result.Findings)
		}
	}
}

func TestEveryAttackIsTheOnlyFinderOfSomeHole(t *testing.T) {
	only := map[string]bool{}
	for _, by := range attacksByHole {
		only[by] = true
	}
	for _, a := range probe.Attacks() {
		if !only[a.ID] {
			t.Errorf("%s is the only finder of no hole", a.ID)
		}
	}
}
