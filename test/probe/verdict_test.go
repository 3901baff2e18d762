package probe_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal/probe"
)

// counting counts the requests, and gives no answer to those after the given number.
func counting(server http.Handler, count *atomic.Int64, after int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) > after {
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(w, r)
	})
}

func TestAServerThatDiesInTheMiddleIsNotTakenForASoundOne(t *testing.T) {
	for _, after := range []int64{15, 40, 200} {
		server := newServer(t)
		report := run(t, counting(server, new(atomic.Int64), after), fullOptions(server))
		if report.Exit != probe.ExitUnclear {
			t.Errorf("after %d requests: exit %d, %s", after, report.Exit, report.Verdict)
		}
	}
}

func TestABudgetIsKept(t *testing.T) {
	server := newServer(t)
	var count atomic.Int64
	options := fullOptions(server)
	options.Budget = 300
	report := run(t, counting(server, &count, 1<<30), options)
	if count.Load() > 300 || report.Exit != probe.ExitUnclear || !strings.Contains(report.Verdict, "budget") {
		t.Errorf("%d requests, exit %d: %s", count.Load(), report.Exit, report.Verdict)
	}
}

func TestTheProbeEndsWhenItsTimeIsOver(t *testing.T) {
	server := newServer(t)
	options := fullOptions(server)
	options.MaxAge, options.MaxTime, options.Rate = 0, 300*time.Millisecond, 50
	report := run(t, server, options)
	if report.Exit != probe.ExitUnclear || !strings.Contains(report.Verdict, "300ms") || len(found(report)) > 0 {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
	for _, bad := range []probe.Options{{MaxTime: -1}, {MaxTime: time.Minute, MaxAge: time.Minute}} {
		if bad.Check() == nil {
			t.Errorf("%+v is allowed", bad)
		}
	}
	if err := (&probe.Options{MaxAge: 2 * time.Hour}).Check(); err != nil {
		t.Errorf("without a limit, the age is added to it: %v", err)
	}
}

func TestAnAttackThatIsRequiredAndNotTriedIsUnclear(t *testing.T) {
	server := newServer(t)
	options := fullOptions(server)
	options.OtherBearer, options.Require, options.Only = "", []string{"other-user"}, []string{"empty", "other-user"}
	if report := run(t, server, options); report.Exit != probe.ExitUnclear ||
		!strings.Contains(report.Verdict, "other-user") {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
}

func TestAFindingOutweighsWhatCouldNotBeTold(t *testing.T) {
	server := newServer(t, "stripping")
	options := fullOptions(server)
	options.Only = []string{"stripped"}
	options.Targets = append(options.Targets[:1], probe.Target{Method: "tools/call", Name: "rolback"})
	if report := run(t, server, options); report.Exit != probe.ExitFinding {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
}

func TestAnAcceptedRiskIsNoFindingAndIsNotSilent(t *testing.T) {
	server := newServer(t, "stripping")
	options := fullOptions(server)
	options.Only = []string{"stripped"}
	for _, target := range options.Targets {
		options.Unsolicited = append(options.Unsolicited, target.Name)
	}
	report := run(t, server, options)
	if report.Exit != probe.ExitNothing || verdicts(report)["stripped"] != probe.AcceptedRisk ||
		!strings.Contains(report.Verdict, "accepted risk") {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
	options.Unsolicited = options.Unsolicited[1:]
	if report := run(t, server, options); report.Exit != probe.ExitFinding {
		t.Errorf("a tool that was not named is exempted too: %s", report.Verdict)
	}
}
