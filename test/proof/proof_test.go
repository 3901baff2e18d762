package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/probe"
)

const committed = "../../docs/proof/index.html"

// TestTheProofIsWhatANewRunWrites also checks both verdicts: many attacks get through to the
// unprotected server, and none to the protected server.
func TestTheProofIsWhatANewRunWrites(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it waits until a token expires, and the tests without -short and without the race detector do that")
	}
	without, with, err := probeBoth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := without.report.Count()[probe.Found]; without.report.Exit != probe.ExitFinding || n < 12 {
		t.Errorf("only %d classes got through without the line", n)
	}
	if with.report.Exit != probe.ExitNothing {
		t.Error(with.report.Verdict)
	}
	for _, side := range []*side{without, with} {
		for _, r := range side.report.Results {
			if tried := r.Verdict != probe.NotTried; !tried && (r.ID == "expired" || r.ID == "other-user" || r.ID == "other-target") {
				t.Errorf("%s was not tried: %s", r.ID, r.Why)
			}
		}
	}
	var fresh bytes.Buffer
	if err := write(&fresh, without, with); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, ok := firstDifference(string(old), fresh.String()); !ok {
		t.Errorf("docs/proof/index.html is not what a new run writes; run make proof and look at the page\n old %s\n new %s", a, b)
	}
}

// firstDifference returns the first lines that differ. ok is true if the texts are equal.
func firstDifference(old, fresh string) (a, b string, ok bool) {
	was, is := strings.Split(old, "\n"), strings.Split(fresh, "\n")
	for i := range max(len(was), len(is)) {
		a, b = "", ""
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b {
			return a, b, false
		}
	}
	return "", "", old == fresh
}

func TestThePageNeedsNothingElse(t *testing.T) {
	page, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if len(page) < 10_000 {
		t.Fatalf("only %d bytes", len(page))
	}
	for _, loads := range []string{`(?i)<(script|link|img|iframe|object|embed|base|form|audio|video|source|svg)\b`, `(?i)@import|url\(|\bsrc\s*=|\bhref\s*=|\bon[a-z]+\s*=\s*"`} {
		if found := regexp.MustCompile(loads).Find(page); found != nil {
			t.Errorf("%q in the page", found)
		}
	}
}

func TestThePageHasNothingThatChanges(t *testing.T) {
	page, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, pattern, allowed string }{
		{"a token", `ms1\.`, `^$`},
		{"an access token", `(alice|bob)-token`, `^$`},
		{"a time", `\d\d:\d\d:\d\d`, `^$`},
		{"a date", `20\d\d-\d\d-\d\d`, `^2026-07-28$`}, // the revision of the protocol
		{"a port", `127\.0\.0\.1:\d+`, `:8080$`},
		{"the id of a request", `&#34;id&#34;:\d+`, `:[1-9]$`},
	} {
		for _, found := range regexp.MustCompile(c.pattern).FindAllString(string(page), -1) {
			if !regexp.MustCompile(c.allowed).MatchString(found) {
				t.Errorf("%s in the page: %s", c.what, found)
			}
		}
	}
}
