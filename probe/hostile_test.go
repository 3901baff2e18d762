package probe

import (
	"strings"
	"testing"
	"time"
)

func TestAnEmptyStateIsAttackedLikeAnyOther(t *testing.T) {
	report := runAgainst(t, toolServer(func(c toolCall) string {
		if c.RequestState == nil || c.InputResponses["confirm"].Action == "" {
			return asksWith("", map[string]string{"confirm": formOf(yesOrNo)})
		}
		return resultOf("done")
	}), Options{Targets: deploy, Timeout: 5 * time.Second})
	if report.Exit != ExitFinding || verdicts(report)["made-up"] != Found {
		t.Errorf("exit %d: %s", report.Exit, report.Verdict)
	}
	for _, result := range report.Results {
		if strings.Contains(result.Why, "the probe itself failed") {
			t.Errorf("%s: %s", result.ID, result.Why)
		}
	}
}

func TestAnAttackThatPanicsIsUnclearAndTheReportIsKept(t *testing.T) {
	a := &Attack{ID: "empty", try: func(*trial) { panic("index out of range") }}
	p := &probe{ctx: t.Context(), server: &web{}, honest: map[string]honest{}}
	if result := p.attempt(a, &Report{}); result.Verdict != Unclear || result.Why != "the probe itself failed: index out of range" {
		t.Errorf("%s: %s", result.Verdict, result.Why)
	}
	a.try = func(tr *trial) { tr.found(deploy[0], "it got through"); panic("then") }
	if result := p.attempt(a, &Report{}); result.Verdict != Found || len(result.Findings) != 1 {
		t.Errorf("a finding before the panic is lost: %s", result.Verdict)
	}
}
