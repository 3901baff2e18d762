package probe

import (
	"context"
	"fmt"
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
	a.try = func(tr *trial) { tr.recordFinding(deploy[0], "it got through"); panic("then") }
	if result := p.attempt(a, &Report{}); result.Verdict != Found || len(result.Findings) != 1 {
		t.Errorf("a finding before the panic is lost: %s", result.Verdict)
	}
}

func TestAServerCannotMakeTheProbeWriteMuch(t *testing.T) {
	array := func(items string, least int) string {
		return fmt.Sprintf(`{"type":"array","minItems":%d,"items":%s}`, least, items)
	}
	with := func(property string) string {
		return formOf(`{"type":"object","properties":{"a":` + property + `},"required":["a"]}`)
	}
	many := func(n int, question string) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("k", i)] = question
		}
		return all
	}
	for name, test := range map[string]struct {
		questions map[string]string
		why       string // a part of the error; "" if the probe answers the questions
	}{
		"100 items":                    {many(1, with(array(`{"type":"string"}`, 100))), ""},
		"101 items":                    {many(1, with(array(`{"type":"string"}`, 101))), "at least 101 items"},
		"200 million items":            {many(1, with(array(`{"type":"string"}`, 200_000_000))), "at least 200000000 items"},
		"arrays in arrays":             {many(1, with(array(array(array(array(array(array(`{"type":"integer"}`, 100), 100), 100), 100), 100), 100))), "longer than"},
		"64 KiB of text":               {many(1, with(`{"type":"string","minLength":65536}`)), ""},
		"more text":                    {many(1, with(`{"type":"string","minLength":65537}`)), "at least 65537 characters"},
		"64 questions":                 {many(64, with(`{"type":"string"}`)), ""},
		"65 questions":                 {many(65, with(`{"type":"string"}`)), "65 questions"},
		"a long answer to each":        {many(20, with(`{"type":"string","minLength":65536}`)), "longer than"},
		"a long choice":                {many(1, with(`{"enum":[`+quoted(strings.Repeat("x", 2<<20))+`]}`)), "longer than"},
		"a long key":                   {map[string]string{strings.Repeat("k", 2<<20): formOf(yesOrNo)}, "longer than"},
		"a long name in the complaint": {map[string]string{strings.Repeat("k", 1000): with(array(`{"type":"string"}`, 101))}, "kkk"},
		"many members": {many(1, formOf(`{"type":"object","properties":`+func() string {
			return wide(64, `{"type":"string","minLength":65536}`)
		}()+`}`)), "longer than"},
	} {
		r := &reply{status: 200}
		r.read([]byte(`{` + asksWith("s", test.questions) + `}`))
		answers, err := probeOf("http://127.0.0.1/mcp").answers(deploy[0], r)
		if (err == nil) != (test.why == "") || err != nil && (!strings.Contains(err.Error(), test.why) || len(err.Error()) > 500) {
			t.Errorf("%s: %d answers, %.200v", name, len(answers), err)
		}
	}
}

func TestALongRefusalIsNotKept(t *testing.T) {
	for size, kept := range map[int]int{1: 1, maxKept: 0} {
		connection := &lineServer{answer: `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"` + strings.Repeat("x", size) + `"}}`}
		p := &probe{ctx: t.Context(), server: connection, Options: Options{Timeout: time.Second}}
		tr := &trial{probe: p, attack: &Attack{}, result: &Result{Outcomes: map[string]int{}}}
		tr.tell(deploy[0].call("{}").with("requestState", quoted(strings.Repeat("s", 1<<20))))
		if len(p.rejections) != 0 {
			t.Error("a refusal of a state that is too long to be compared is kept")
		}
		if tr.tell(deploy[0].call("{}").with("requestState", `"s"`)); len(p.rejections) != kept {
			t.Errorf("of refusals with %d bytes, %d are kept", size, len(p.rejections))
		}
	}
}

// lineServer answers every request with the same text.
type lineServer struct{ answer string }

func (s *lineServer) kind() string { return "stdio" }
func (s *lineServer) name() string { return "line" }
func (s *lineServer) Close() error { return nil }
func (s *lineServer) send(context.Context, message, int, string) *reply {
	r := &reply{raw: []byte(s.answer)}
	r.read(r.raw)
	return r
}

func TestWhyAnAttackIsUnclearIsShort(t *testing.T) {
	long := map[string]string{}
	for i := range 60 {
		long[fmt.Sprint(i, strings.Repeat("k", 10_000))] = formOf(yesOrNo)
	}
	calls, tool := 0, &keeper{rounds: 1}
	report := runAgainst(t, toolServer(func(c toolCall) string {
		if calls++; calls < 20 {
			return tool.call(c)
		}
		return asksWith("s", long)
	}), Options{Targets: deploy, Only: []string{"empty", "made-up", "truncated", "forked"}})
	if count := report.Count()[Unclear]; count == 0 {
		t.Errorf("nothing is unclear: %s", report.Verdict)
	}
	for _, result := range report.Results {
		if len(result.Why) > 500 {
			t.Errorf("%s: %d bytes", result.ID, len(result.Why))
		}
	}
}
