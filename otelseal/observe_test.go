package otelseal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/otelseal"
)

func TestOperationsAreCountedByMethodTargetAndReason(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	for _, e := range []tripseal.Event{
		{Op: tripseal.OpSeal, Method: "tools/call", Target: "deploy"},
		{Op: tripseal.OpSeal, Method: "tools/call", Target: "deploy"},
		{Op: tripseal.OpOpen, Method: "prompts/get", Target: "greet"},
		{Op: tripseal.OpOpen, Method: "resources/read", Target: "file:", Reason: tripseal.ReasonExpired},
		{Op: tripseal.OpOpen, Method: "tools/call", Target: tripseal.TargetUnknown, Reason: tripseal.ReasonForged},
		{Op: cursor.OpIssue, Method: "tools/list"},
		{Op: cursor.OpOpen, Method: "tools/call", Target: "orders", Reason: tripseal.ReasonExpired},
		{Op: tripseal.OpSealHandle, Target: "session"},
		{Op: tripseal.OpOpenHandle, Target: "unknown", Reason: tripseal.ReasonForged},
	} {
		o.Observe(t.Context(), e)
	}
	want := []string{
		"error.type=expired gen_ai.tool.name=orders mcp.method.name=tools/call tripseal.operation=open_cursor",
		"error.type=expired mcp.method.name=resources/read tripseal.operation=open url.scheme=file",
		"error.type=forged mcp.method.name=tools/call tripseal.operation=open",
		"error.type=forged tripseal.handle.kind=unknown tripseal.operation=open_handle",
		"gen_ai.prompt.name=greet mcp.method.name=prompts/get tripseal.operation=open",
		"gen_ai.tool.name=deploy mcp.method.name=tools/call tripseal.operation=seal",
		"mcp.method.name=tools/list tripseal.operation=issue_cursor",
		"tripseal.handle.kind=session tripseal.operation=seal_handle",
	}
	if got := m.of("tripseal.operations"); !slices.Equal(got, want) {
		t.Errorf("counted as\n%s", strings.Join(got, "\n"))
	}
	if n := m.sum("tripseal.operations"); n != 9 {
		t.Errorf("%v operations", n)
	}
}

func TestDurationsAndSizesAreMeasured(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	o.Observe(t.Context(), tripseal.Event{Op: tripseal.OpSeal, Method: "tools/call", Duration: 3 * time.Second, Format: "ms1.", TokenBytes: 300, StateBytes: 40})
	o.Observe(t.Context(), tripseal.Event{Op: tripseal.OpOpen, Method: "tools/call", Duration: time.Second, TokenBytes: 60_000, Reason: tripseal.ReasonForged})
	o.Observe(t.Context(), tripseal.Event{Op: cursor.OpOpen, Method: "tools/list", Format: "mc1.", TokenBytes: 100})
	o.Observe(t.Context(), tripseal.Event{Op: tripseal.OpDrop, Method: "tools/call", Dropped: 5})
	for name, want := range map[string]float64{
		"tripseal.operation.duration": 4,
		"tripseal.token.size":         400, // without the size of the forged token
		"tripseal.state.size":         40,
		"tripseal.answers.dropped":    5,
	} {
		if got := m.sum(name); got != want {
			t.Errorf("%s: %v, not %v", name, got, want)
		}
	}
	if got := m.of("tripseal.token.size"); !slices.Equal(got, []string{
		"tripseal.operation=open_cursor tripseal.token.format=mc1.", "tripseal.operation=seal tripseal.token.format=ms1."}) {
		t.Errorf("sizes by %q", got)
	}
	if got := m.of("tripseal.state.size"); len(got) != 1 {
		t.Errorf("states of %q: a cursor has none", got)
	}
	if n := m.sum("tripseal.operations"); n != 3 {
		t.Errorf("%v operations: a drop is none", n)
	}
}

// randomText returns a text that a client could send.
func randomText() string {
	letters := []rune("abcdefghijklmnopqrstuvwxyz/:.\"\\\n\x00é世\u202e")
	var b strings.Builder
	for range rand.IntN(200) {
		b.WriteRune(letters[rand.IntN(len(letters))])
	}
	return b.String() + string([]byte{byte(rand.IntN(256))})
}

func pick(from ...string) string {
	if i := rand.IntN(len(from) + 1); i < len(from) {
		return from[i]
	}
	return randomText()
}

func randomEvent() tripseal.Event {
	return tripseal.Event{
		Op:     tripseal.Op(pick("seal", "open", "issue_cursor", "open_cursor", "seal_handle", "open_handle", "drop")),
		Reason: []tripseal.Reason{"", "", "expired", "forged", "replayed", "store_failed", "user"}[rand.IntN(7)],
		Method: pick("tools/call", "tools/call", "prompts/get", "resources/read", "tools/list"),
		Target: pick("unknown", "", "deploy", "file:", "https://example.com/secret"),
		Format: []string{"ms1.", "unprefixed"}[rand.IntN(2)],
		KeyID:  randomText(), Flow: pick(""), Round: rand.IntN(10), Dropped: rand.IntN(3),
		Cause: errors.New("a secret"), TokenBytes: rand.IntN(1000), StateBytes: rand.IntN(1000),
	}
}

func TestRandomEventsCreateABoundedNumberOfSeries(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5000 {
				o.Observe(context.Background(), randomEvent())
			}
		})
	}
	group.Wait()
	own := 0
	for _, series := range m.of("tripseal.operations") {
		if strings.Contains(series, "gen_ai.") && !strings.Contains(series, "name=_OTHER") ||
			strings.Contains(series, "url.scheme=") && !strings.Contains(series, "scheme=_OTHER") ||
			strings.Contains(series, "handle.kind=") && !strings.Contains(series, "kind=_OTHER") {
			own++
		}
	}
	if own != 600 {
		t.Errorf("%d series name a target, not 600", own)
	}
	for name, most := range map[string]int{
		"tripseal.operations": 1968, "tripseal.operation.duration": 168, "tripseal.token.size": 14,
		"tripseal.state.size": 2, "tripseal.answers.dropped": 8,
	} {
		if n := len(m.of(name)); n == 0 || n > most {
			t.Errorf("%s has %d series, more than %d", name, n, most)
		}
	}
}

// TestWhenTheSeriesAreUsedUpTheReasonStays checks that the reason of an operation is still counted
// when no more targets get series of their own. So an alert on a reason works, whatever clients did
// before.
func TestWhenTheSeriesAreUsedUpTheReasonStays(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	for i := range 1000 {
		o.Observe(t.Context(), tripseal.Event{Op: tripseal.OpSeal, Method: "tools/call", Target: fmt.Sprint("tool", i)})
	}
	o.Observe(t.Context(), tripseal.Event{Op: tripseal.OpOpen, Method: "tools/call", Target: "deploy", Reason: tripseal.ReasonStoreFailed})
	if !slices.Contains(m.of("tripseal.operations"), "error.type=store_failed gen_ai.tool.name=_OTHER mcp.method.name=tools/call tripseal.operation=open") {
		t.Error("the reason is lost")
	}
	if n := len(m.of("tripseal.operations")); n != 602 {
		t.Errorf("%d series, not 600 and two for all others", n)
	}
	if n := m.sum("tripseal.operations"); n != 1001 {
		t.Errorf("%v operations", n)
	}
}

func TestOnlyListedTargetsAreNamed(t *testing.T) {
	tools := func(targets []string) (found []string, onSpan string) {
		o, m := newObserver(t, otelseal.Config{Targets: targets})
		s := new(span)
		for _, tool := range []string{"deploy", "rollback", `"r\u00e9sum\u00e9"`} {
			o.Observe(trace.ContextWithSpan(t.Context(), s), tripseal.Event{Op: tripseal.OpSeal, Method: "tools/call", Target: tool})
		}
		for _, series := range m.of("tripseal.operations") {
			_, tool, _ := strings.Cut(series, "gen_ai.tool.name=")
			tool, _, _ = strings.Cut(tool, " ")
			found = append(found, tool)
		}
		return found, text(s.events[1])
	}
	for _, c := range []struct {
		targets, want []string
		onSpan        bool
	}{
		{nil, []string{`"r\u00e9sum\u00e9"`, "deploy", "rollback"}, true},
		{[]string{"deploy", "résumé"}, []string{`"r\u00e9sum\u00e9"`, "_OTHER", "deploy"}, true},
		{[]string{}, []string{""}, false},
	} {
		got, onSpan := tools(c.targets)
		if !slices.Equal(got, c.want) || strings.Contains(onSpan, "rollback") != c.onSpan {
			t.Errorf("%q: metrics name %q, the span has %s", c.targets, got, onSpan)
		}
	}
}

func TestNothingThatAClientOrACallbackWroteIsALabel(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	const secret = "s3cret"
	s := new(span)
	ctx := trace.ContextWithSpan(t.Context(), s)
	for _, op := range []tripseal.Op{tripseal.OpSeal, tripseal.OpOpen, tripseal.OpDrop, cursor.OpIssue, cursor.OpOpen, secret} {
		for _, reason := range []tripseal.Reason{"", tripseal.ReasonForged} {
			o.Observe(ctx, tripseal.Event{Op: op, Reason: reason, Method: secret, Target: secret, Cause: errors.New(secret)})
			o.Observe(ctx, tripseal.Event{Op: op, Reason: reason, Method: "resources/read", Target: "https://" + secret, Cause: errors.New(secret)})
			o.Observe(ctx, tripseal.Event{Op: op, Reason: reason, Method: "resources/read", Target: secret})
			o.Observe(ctx, tripseal.Event{Op: op, Reason: reason, Method: "tools/list", Target: secret})
			if reason != "" {
				o.Observe(ctx, tripseal.Event{Op: op, Reason: reason, Method: "tools/call", Target: tripseal.TargetUnknown, KeyID: secret})
			}
		}
	}
	o.Observe(ctx, tripseal.Event{
		Op: tripseal.OpOpenHandle, Reason: tripseal.ReasonForged, Method: secret, Target: "session", KeyID: secret,
	})
	all := fmt.Sprint(m.series, s.attrs, s.names, s.events)
	if strings.Contains(all, secret) {
		t.Error(all)
	}
}

func TestASpanShowsWhatHappenedToItsRequest(t *testing.T) {
	o, _ := newObserver(t, otelseal.Config{})
	const tool = "gen_ai.tool.name=deploy mcp.method.name=tools/call "
	for _, c := range []struct {
		event tripseal.Event
		name  string
		want  string
	}{
		{tripseal.Event{Op: tripseal.OpSeal, Flow: "f1", Round: 1, KeyID: "3f2a91c0", Format: "ms1.", TokenBytes: 300, StateBytes: 40}, "tripseal.seal",
			tool + "tripseal.flow.id=f1 tripseal.flow.round=1 tripseal.key.id=3f2a91c0 tripseal.state.size=40 tripseal.token.format=ms1. tripseal.token.size=300"},
		{tripseal.Event{Op: tripseal.OpSeal, Reason: tripseal.ReasonTooLarge}, "tripseal.seal", "error.type=too_large " + strings.TrimSpace(tool)},
		{tripseal.Event{Op: tripseal.OpOpen, Flow: "f1", Round: 1, KeyID: "3f2a91c0"}, "tripseal.open", tool + "tripseal.flow.id=f1 tripseal.flow.round=1 tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: tripseal.OpOpen, KeyID: "3f2a91c0"}, "tripseal.open", tool + "tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: tripseal.OpOpen, Flow: "f1", Round: 1, KeyID: "3f2a91c0", Reason: tripseal.ReasonExpired}, "tripseal.reject",
			"error.type=expired " + tool + "tripseal.flow.id=f1 tripseal.flow.round=1 tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: tripseal.OpOpen, KeyID: "3f2a91c0", Reason: tripseal.ReasonForged}, "tripseal.reject", "error.type=forged " + strings.TrimSpace(tool)},
		{tripseal.Event{Op: tripseal.OpDrop, Flow: "f1", Round: 2, Dropped: 3}, "tripseal.drop",
			tool + "tripseal.answers.dropped=3 tripseal.flow.id=f1 tripseal.flow.round=2"},
		{tripseal.Event{Op: cursor.OpIssue, KeyID: "3f2a91c0"}, "tripseal.issue_cursor", tool + "tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: cursor.OpOpen, KeyID: "3f2a91c0"}, "tripseal.open_cursor", tool + "tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: cursor.OpOpen, KeyID: "3f2a91c0", Reason: tripseal.ReasonExpired}, "tripseal.reject_cursor", "error.type=expired " + strings.TrimSpace(tool)},
		{tripseal.Event{Op: cursor.OpOpen, KeyID: "3f2a91c0", Reason: tripseal.ReasonUnknownKey}, "tripseal.reject_cursor", "error.type=unknown_key " + strings.TrimSpace(tool)},
		{tripseal.Event{Op: tripseal.OpSealHandle, KeyID: "3f2a91c0"}, "tripseal.seal_handle", "tripseal.handle.kind=deploy tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: tripseal.OpOpenHandle, KeyID: "3f2a91c0"}, "tripseal.open_handle", "tripseal.handle.kind=deploy tripseal.key.id=3f2a91c0"},
		{tripseal.Event{Op: tripseal.OpOpenHandle, KeyID: "3f2a91c0", Reason: tripseal.ReasonExpired}, "tripseal.reject_handle",
			"error.type=expired tripseal.handle.kind=deploy"},
		{tripseal.Event{Op: tripseal.OpOpenHandle, KeyID: "3f2a91c0", Reason: tripseal.ReasonUser}, "tripseal.reject_handle",
			"error.type=user tripseal.handle.kind=deploy"},
		{tripseal.Event{Op: "shred"}, "tripseal.other", strings.TrimSpace(tool)},
	} {
		c.event.Method, c.event.Target = "tools/call", "deploy"
		s := new(span)
		o.Observe(trace.ContextWithSpan(t.Context(), s), c.event)
		if len(s.names) != 1 || s.names[0] != c.name || text(s.events[0]) != c.want {
			t.Errorf("%+v is %q with %s", c.event, s.names, text(s.events[0]))
		}
		if want := map[bool]string{true: "tripseal.flow.id=f1"}[c.event.Flow != ""]; text(s.attrs) != want {
			t.Errorf("%+v: the span has %q", c.event, text(s.attrs))
		}
	}
}

func TestASpanThatDoesNotRecordGetsNothing(t *testing.T) {
	o, _ := newObserver(t, otelseal.Config{})
	s := &span{asleep: true}
	o.Observe(trace.ContextWithSpan(t.Context(), s), tripseal.Event{Op: tripseal.OpSeal, Flow: "f1"})
	if len(s.names)+len(s.attrs) > 0 {
		t.Error(s.names, s.attrs)
	}
}

func TestAnEventCostsNoAllocation(t *testing.T) {
	o, err := otelseal.New(otelseal.Config{}) // the global provider, which does nothing here
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, e := range []tripseal.Event{
		{Op: tripseal.OpSeal, Method: "tools/call", Target: "deploy", Format: "ms1.", TokenBytes: 300, StateBytes: 40},
		{Op: tripseal.OpOpen, Method: "tools/call", Target: tripseal.TargetUnknown, Reason: tripseal.ReasonForged},
		{Op: tripseal.OpOpenHandle, Target: "session", Format: "mh1.", TokenBytes: 218},
	} {
		if n := testing.AllocsPerRun(100, func() { o.Observe(ctx, e) }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
