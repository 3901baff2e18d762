package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/sealtest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the load provokes many rejections
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	f, err := newFleet(filepath.Join(t.TempDir(), "keys"))
	must(t, err)
	t.Cleanup(f.close)
	return f
}

func TestTheRoundsOfAFlowAreTracesJoinedByItsID(t *testing.T) {
	f := startFleet(t)
	must(t, f.flow(t.Context()))
	must(t, f.flow(t.Context()))
	spans, err := f.spans()
	must(t, err)
	flows := make(map[string][]string) // what happened, by flow
	traces, replicas := make(map[string]bool), make(map[string]map[string]bool)
	for _, s := range spans {
		flow := s.attribute(s.Attributes, "tripseal.flow.id")
		if len(s.Events) == 0 {
			continue
		}
		if flow == "" || traces[s.SpanContext.TraceID] || s.Parent.SpanID != "0000000000000000" {
			t.Errorf("%+v has no flow, or is in the trace of another round", s)
		}
		traces[s.SpanContext.TraceID] = true
		if replicas[flow] == nil {
			replicas[flow] = make(map[string]bool)
		}
		replicas[flow][s.attribute(s.Resource, "service.instance.id")] = true
		for _, e := range s.Events {
			if s.attribute(e.Attributes, "tripseal.flow.id") != flow {
				t.Errorf("an event belongs to another flow than its span: %+v", s)
			}
			flows[flow] = append(flows[flow], e.Name+s.attribute(e.Attributes, "tripseal.flow.round"))
		}
	}
	if len(flows) != 2 || len(traces) != 6 {
		t.Errorf("%d flows in %d traces", len(flows), len(traces))
	}
	for flow, happened := range flows {
		if want := []string{"tripseal.seal1", "tripseal.open1", "tripseal.seal2", "tripseal.open2"}; !slices.Equal(happened, want) || len(replicas[flow]) != 2 {
			t.Errorf("flow %s: %v on %v", flow, happened, replicas[flow])
		}
	}
}

// TestEveryCallOfAMixedLoadIsCountedOnce adds up the counts of both replicas, and compares the
// sums with the calls that the load makes.
func TestEveryCallOfAMixedLoadIsCountedOnce(t *testing.T) {
	f := startFleet(t)
	must(t, f.load(t.Context()))
	got := make(map[string]float64) // by operation and reason
	for _, r := range f.replicas {
		text, err := r.scrape(t.Context())
		must(t, err)
		for _, s := range series(t, text) {
			if s.name == "tripseal_operations_total" {
				got[strings.TrimSpace(s.labels["tripseal_operation"]+" "+s.labels["error_type"])] += s.value
			}
			if s.name == "tripseal_answers_dropped_total" {
				got["drop"] += s.value
			}
		}
	}
	want := map[string]float64{
		"seal": 10*2 + 1 + 2*2, "open": 10*2 + 2, "open replayed": 2, "drop": 4,
		"open user": 3, "open arguments": 3, "open request": 3, "open malformed": 3, "open forged": 3,
		"issue_cursor": 2, "open_cursor": 2, "open_cursor user": 4,
	}
	for what, n := range want {
		if got[what] != n {
			t.Errorf("%s: %v, not %v", what, got[what], n)
		}
		delete(got, what)
	}
	if len(got) > 0 {
		t.Errorf("also counted: %v", got)
	}
}

// TestTelemetryTellsNothingOfAUser looks for users, arguments, tokens and other texts of a load in
// everything that the replicas export.
func TestTelemetryTellsNothingOfAUser(t *testing.T) {
	f := startFleet(t)
	must(t, f.load(t.Context()))
	for _, r := range f.replicas {
		text, err := r.scrape(t.Context())
		must(t, err)
		text += string(r.exported.copy())
		for _, secret := range []string{"alice", "bob", "frontend", "1.4.2", "6.6.6", "traffic", "discount", "keys\"", audience} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is exported", secret)
			}
		}
		if token := regexp.MustCompile(`m[sc]1\.[^"]+`).FindString(text); token != "" {
			t.Errorf("the token %q is exported", token)
		}
		if !strings.Contains(text, `"deploy"`) || !strings.Contains(text, `"ms1."`) {
			t.Error("nothing is exported: this proves nothing")
		}
	}
}

// This type holds one line of the text that Prometheus reads.
type one struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	line  = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$`)
	label = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)",?`)
)

// series returns the lines with metrics of tripseal.
func series(t *testing.T, text string) (all []one) {
	t.Helper()
	for row := range strings.Lines(text) {
		if !strings.HasPrefix(row, "tripseal_") {
			continue
		}
		parts := line.FindStringSubmatch(strings.TrimSuffix(row, "\n"))
		if parts == nil {
			t.Fatalf("not a line of Prometheus: %s", row)
		}
		value, err := strconv.ParseFloat(parts[3], 64)
		must(t, err)
		labels := make(map[string]string)
		for _, l := range label.FindAllStringSubmatch(parts[2], -1) {
			labels[l[1]] = l[2]
		}
		all = append(all, one{parts[1], labels, value})
	}
	return all
}

// collect returns what a replica exports of each metric.
func collect(t *testing.T, r *replica) map[string]exportedMetric {
	t.Helper()
	var data metricdata.ResourceMetrics
	must(t, r.reader.Collect(t.Context(), &data))
	found := make(map[string]exportedMetric)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			e := exportedMetric{unit: m.Unit, description: m.Description}
			switch points := m.Data.(type) {
			case metricdata.Sum[int64]:
				e.kind = "counter"
				for _, p := range points.DataPoints {
					e.add(p.Attributes.ToSlice())
				}
			case metricdata.Gauge[int64]:
				e.kind = "gauge"
				for _, p := range points.DataPoints {
					e.add(p.Attributes.ToSlice())
				}
			case metricdata.Histogram[int64]:
				e.kind = "histogram"
				for _, p := range points.DataPoints {
					e.add(p.Attributes.ToSlice())
				}
			case metricdata.Histogram[float64]:
				e.kind = "histogram"
				for _, p := range points.DataPoints {
					e.add(p.Attributes.ToSlice())
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
			found[m.Name] = e
		}
	}
	return found
}

func randomText() string {
	letters := []rune("abcdefghijklmnopqrstuvwxyz0123456789-_/:. \"\\\né世")
	text := make([]rune, 1+rand.IntN(60))
	for i := range text {
		text[i] = letters[rand.IntN(len(letters))]
	}
	return string(text)
}

// oneOf returns one of the values or, half of the time, a random text.
func oneOf(values ...string) string {
	if i := rand.IntN(2 * len(values)); i < len(values) {
		return values[i]
	}
	return randomText()
}

// TestRandomInputCreatesNoMoreSeriesThanThePageSays sends ten thousand calls with random
// targets, users and tokens through a boundary. It also gives ten thousand events of all kinds
// with random texts directly to the observer.
func TestRandomInputCreatesNoMoreSeriesThanThePageSays(t *testing.T) {
	r := newReplica(t)
	store, err := replay.NewSingleProcess(replay.Config{})
	must(t, err)
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: audience, Replay: r.observer.Store(store), Observer: r.observer.Observe,
	})
	must(t, err)
	const inputs = 10_000
	methods := []string{"tools/call", "prompts/get", "resources/read", "tools/list"}
	for range inputs {
		request := tripseal.Request{Method: oneOf(methods...), Target: randomText(), Arguments: []byte(`{}`), Principal: tripseal.User(randomText())}
		round, err := boundary.Open(t.Context(), request, "")
		must(t, err)
		state := randomText()
		token, err := boundary.Seal(t.Context(), &round, &state)
		if err != nil {
			continue // a call of this method cannot ask questions
		}
		boundary.Open(t.Context(), request, oneOf(token, token, forge(token)))
		request.Principal = tripseal.User(randomText())
		boundary.Open(t.Context(), request, token)
	}
	reasons := []string{"", "", "expired", "user", "forged", "replayed", "store_failed", "codec_failed"}
	for range inputs {
		r.observer.Observe(t.Context(), tripseal.Event{
			Op:     tripseal.Op(oneOf("seal", "open", "issue_cursor", "open_cursor", "drop")),
			Reason: tripseal.Reason(oneOf(reasons...)), Method: oneOf(methods...), Target: oneOf("deploy", "file:", randomText()+":"),
			Format: oneOf("ms1.", "mc1."), KeyID: randomText(), Flow: randomText(), Round: rand.IntN(1000), Dropped: 1,
		})
	}

	page := readPage(t)
	found := collect(t, r)
	for name, documented := range page.metrics {
		if n := len(found[name].series); n > documented.series {
			t.Errorf("%s has %d series; the page says at most %d", name, n, documented.series)
		}
	}
	if n := len(found["tripseal.operations"].series); n < 600 {
		t.Errorf("only %d series: this proves nothing", n)
	}
	text, err := r.scrape(t.Context())
	must(t, err)
	all := series(t, text)
	if len(all) > page.lines || len(all) < 1000 {
		t.Errorf("Prometheus reads %d lines; the page says at most %d", len(all), page.lines)
	}
	if strings.Contains(text, "otel_metric_overflow") {
		t.Error("the SDK merged series: its limit was reached before ours")
	}
	t.Logf("%d random calls and %d random events: %d series of operations, %d lines in Prometheus",
		inputs, inputs, len(found["tripseal.operations"].series), len(all))
}

// TestTheBoundIsExact causes every series that there can be. There must be exactly as many as
// docs/telemetry.md says.
func TestTheBoundIsExact(t *testing.T) {
	r := newReplica(t)
	ctx := t.Context()
	operations := []tripseal.Op{tripseal.OpSeal, tripseal.OpOpen, cursor.OpIssue, cursor.OpOpen, "shred", tripseal.OpDrop}
	methods := []string{"tools/call", "prompts/get", "resources/read", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping"}
	reasons := append(allReasons(t), "", "bored")
	for i := range 700 { // the first 600 get a series with the name of the target
		r.observer.Observe(ctx, tripseal.Event{Op: tripseal.OpSeal, Method: methods[0], Target: fmt.Sprint("tool", i), Format: fmt.Sprintf("f%d.", i)})
	}
	for _, op := range operations {
		for _, method := range methods {
			for _, reason := range reasons {
				for _, target := range []string{"", "unknown", "deploy", "file:"} {
					for _, format := range []string{"f1.", "f2.", "f3.", "f4.", "f5.", "f6.", "f7.", "f8.", "f0."} {
						r.observer.Observe(ctx, tripseal.Event{Op: op, Method: method, Reason: reason, Target: target, Format: format, Dropped: 1})
					}
				}
			}
		}
	}
	for _, err := range []error{nil, replay.ErrFull, context.Canceled, context.DeadlineExceeded, os.ErrNotExist} {
		for _, first := range []bool{false, true} {
			r.observer.Store(storeFunc(func() (bool, error) { return first, err })).Spend(ctx, tripseal.Use{})
		}
	}
	page, found := readPage(t), collect(t, r)
	for name, documented := range page.metrics {
		if n := len(found[name].series); n != documented.series {
			t.Errorf("%s can have %d series; the page says %d", name, n, documented.series)
		}
	}
	text, err := r.scrape(ctx)
	must(t, err)
	if n := len(series(t, text)); n != page.lines {
		t.Errorf("Prometheus can read %d lines; the page says %d", n, page.lines)
	}
	if strings.Contains(text, "otel_metric_overflow") {
		t.Error("the SDK merged series: its limit was reached before ours")
	}
}

type storeFunc func() (bool, error)

func (f storeFunc) Spend(context.Context, tripseal.Use) (bool, error) { return f() }

// TestAStoreObservedWithTheSDKIsStillAStore checks that a store still works when it is measured
// with the SDK, and that the store is still non-blocking.
func TestAStoreObservedWithTheSDKIsStillAStore(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	must(t, err)
	observed := newReplica(t).observer.Store(store)
	if s, ok := observed.(tripseal.NonBlockingStore); !ok || s.NonBlocking() != observed {
		t.Error("it can block")
	}
	sealtest.TestReplayStore(t, observed)
}

// exportAll returns a replica that exports every metric and every attribute.
func exportAll(t *testing.T) *replica {
	t.Helper()
	f := startFleet(t)
	must(t, f.load(t.Context()))
	must(t, f.load(t.Context())) // a second time, so that both replicas see each call
	r := f.replicas[0]
	ctx, span := r.tracer.Start(t.Context(), "synthetic")
	defer span.End()
	for _, op := range []tripseal.Op{tripseal.OpSeal, tripseal.OpOpen, tripseal.OpDrop} {
		for _, reason := range []tripseal.Reason{"", tripseal.ReasonExpired} {
			if op == tripseal.OpDrop && reason != "" {
				continue
			}
			e := tripseal.Event{Op: op, Reason: reason, Flow: strings.Repeat("ab", 16), Round: 1}
			if op != tripseal.OpDrop {
				e.KeyID, e.Format, e.TokenBytes = "3f2a91c0", "ms1.", 200
				if op == tripseal.OpSeal || reason == "" {
					e.StateBytes = 20
				}
			} else {
				e.Dropped = 1
			}
			for method, target := range map[string]string{"tools/call": "deploy", "prompts/get": "greet", "resources/read": "file:"} {
				e.Method, e.Target = method, target
				r.observer.Observe(ctx, e)
			}
		}
	}
	for _, op := range []tripseal.Op{cursor.OpIssue, cursor.OpOpen} {
		for _, reason := range []tripseal.Reason{"", tripseal.ReasonExpired} {
			r.observer.Observe(ctx, tripseal.Event{Op: op, Reason: reason, Method: "tools/call", Target: "orders", KeyID: "3f2a91c0", Format: "mc1.", TokenBytes: 200})
		}
	}
	return r
}

func TestThePageListsEveryMetricThatIsExported(t *testing.T) {
	r := exportAll(t)
	page := readPage(t)
	found := collect(t, r)
	for name, e := range found {
		documented, ok := page.metrics[name]
		if !ok {
			t.Errorf("the page does not list %s", name)
			continue
		}
		if e.kind != documented.kind || e.unit != documented.unit || !slices.Equal(e.names(), documented.attributes) {
			t.Errorf("%s is a %s in %s with %q, the page says %+v", name, e.kind, e.unit, e.names(), documented)
		}
		if e.description == "" {
			t.Errorf("%s has no description", name)
		}
		for _, attrs := range e.series {
			for key, value := range attrs {
				if values, ok := page.values[key]; ok && !slices.Contains(values, value) {
					t.Errorf("%s has %s=%s, which the page does not list", name, key, value)
				}
			}
		}
	}
	for name := range page.metrics {
		if _, ok := found[name]; !ok {
			t.Errorf("the page lists %s, which is not exported", name)
		}
	}

	text, err := r.scrape(t.Context())
	must(t, err)
	inPrometheus := make(map[string]bool)
	for _, s := range series(t, text) {
		name := s.name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		inPrometheus[name] = true
	}
	for name, documented := range page.metrics {
		if !inPrometheus[documented.prometheus] {
			t.Errorf("%s is not %s in Prometheus", name, documented.prometheus)
		}
		delete(inPrometheus, documented.prometheus)
	}
	if len(inPrometheus) > 0 {
		t.Errorf("the page does not list %v", inPrometheus)
	}
}

func TestThePageListsEveryEventThatIsExported(t *testing.T) {
	r := exportAll(t)
	page := readPage(t)
	spans, err := r.spans()
	must(t, err)
	found := make(map[string]map[string]bool)
	types := make(map[string]string)
	for _, s := range spans {
		for _, a := range s.Attributes {
			if a.Key != "tripseal.flow.id" {
				t.Errorf("a span has %s", a.Key)
			}
		}
		for _, e := range s.Events {
			if found[e.Name] == nil {
				found[e.Name] = make(map[string]bool)
			}
			for _, a := range e.Attributes {
				found[e.Name][a.Key] = true
				types[a.Key] = map[bool]string{true: "string", false: "int"}[fmt.Sprintf("%T", a.Value.Value) == "string"]
			}
		}
	}
	for name, attrs := range found {
		if got := sorted(attrs); !slices.Equal(got, page.events[name]) {
			t.Errorf("%s has %q; the page says %q", name, got, page.events[name])
		}
	}
	for name := range page.events {
		if found[name] == nil {
			t.Errorf("the page lists %s, which is not exported", name)
		}
	}
	for key, kind := range types {
		if page.types[key] != kind {
			t.Errorf("%s is of type %s; the page says %q", key, kind, page.types[key])
		}
		delete(page.types, key)
	}
	if len(page.types) > 0 {
		t.Errorf("no event has %v", page.types)
	}
}

// TestThePageShowsARun checks that the page shows what the command prints, apart from ids and
// times. Equal ids in the output must be equal on the page too.
func TestThePageShowsARun(t *testing.T) {
	var printed strings.Builder
	must(t, show(t.Context(), &printed))
	if got, want := masked(readPage(t).shown), masked(printed.String()); got != want {
		t.Errorf("the page shows\n%s\nthe command prints\n%s", got, want)
	}
}

func masked(text string) string {
	ids := make(map[string]string)
	text = regexp.MustCompile(`\b([0-9a-f]{32}|[0-9a-f]{8})\b`).ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("id%d", len(ids))
		}
		return ids[id]
	})
	return regexp.MustCompile(`(?m)^(\w+_timestamp_seconds) .*$`).ReplaceAllString(text, "$1 time")
}

// TestEveryReasonIsALabel checks that every reason is counted under its own name. If a reason
// is missing in the list of otelseal, it is counted as _OTHER.
func TestEveryReasonIsALabel(t *testing.T) {
	reasons := allReasons(t)
	r := newReplica(t)
	for _, reason := range reasons {
		r.observer.Observe(t.Context(), tripseal.Event{Op: tripseal.OpOpen, Method: "tools/call", Reason: reason})
	}
	found := make(map[string]bool)
	for _, attrs := range collect(t, r)["tripseal.operations"].series {
		found[attrs["error.type"]] = true
	}
	if len(found) != len(reasons) || found["_OTHER"] {
		t.Errorf("%d reasons are counted as %d: %v", len(reasons), len(found), found)
	}
	if text := fmt.Sprintf("the %d [reasons]", len(reasons)); !strings.Contains(readPage(t).text, text) {
		t.Errorf("the page does not say %q", text)
	}
}

// allReasons returns the reasons in the source of the root module.
func allReasons(t *testing.T) (all []tripseal.Reason) {
	t.Helper()
	source, err := os.ReadFile("../../errors.go")
	must(t, err)
	for _, match := range regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		all = append(all, tripseal.Reason(match[1]))
	}
	if len(all) < 20 {
		t.Fatalf("%d reasons found", len(all))
	}
	return all
}

// TestAnEventCostsAtMostTwoAllocations measures the observer with the SDK and two metric readers.
func TestAnEventCostsAtMostTwoAllocations(t *testing.T) {
	r := newReplica(t)
	ctx := context.Background()
	for _, e := range []tripseal.Event{
		{Op: tripseal.OpSeal, Method: "tools/call", Target: "deploy", Format: "ms1.", TokenBytes: 300, StateBytes: 40, Duration: 1000},
		{Op: tripseal.OpOpen, Method: "tools/call", Target: tripseal.TargetUnknown, Reason: tripseal.ReasonForged, Duration: 1000},
	} {
		n := testing.AllocsPerRun(1000, func() { r.observer.Observe(ctx, e) })
		t.Logf("%s %s: %v allocations", e.Op, e.Reason, n)
		if n > 2 {
			t.Errorf("%s %s: %v allocations", e.Op, e.Reason, n)
		}
	}
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	keysFile := filepath.Join(t.TempDir(), "keys")
	must(t, writeKeys(keysFile))
	store, err := replay.NewSingleProcess(replay.Config{})
	must(t, err)
	r, err := startReplica("replica-1", keysFile, store)
	must(t, err)
	t.Cleanup(r.stop)
	return r
}
