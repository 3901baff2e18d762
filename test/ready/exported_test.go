package ready_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	seal "github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
	"github.com/tripseal/tripseal/replay"
)

// The type metrics has the values of each label of each metric.
type metrics map[string]map[string]map[string]bool

var (
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// add adds the metrics in a text that a process serves for Prometheus.
func (m metrics) add(text string) {
	for line := range strings.Lines(text) {
		match := seriesLine.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		if m[match[1]] == nil {
			m[match[1]] = make(map[string]map[string]bool)
		}
		for _, pair := range labelPair.FindAllStringSubmatch(match[2], -1) {
			m.label(match[1], pair[1])[pair[2]] = true
		}
	}
}

// label returns the values of a label, as a set to which the caller can add.
func (m metrics) label(metric, name string) map[string]bool {
	if m[metric][name] == nil {
		m[metric][name] = make(map[string]bool)
	}
	return m[metric][name]
}

// exported returns all metrics that a Go server and the proxy export.
func exported(t *testing.T) metrics {
	t.Helper()
	m := make(metrics)
	m.add(ofServer(t))
	m.add(ofProxy(t))
	// Prometheus itself adds a metric named "up". It also adds two labels to every series.
	m["up"] = make(map[string]map[string]bool)
	for name := range m {
		m.label(name, "job")["release"] = true
		m.label(name, "instance")["a"] = true
	}
	if len(m) < 30 {
		t.Fatalf("only %d metrics were found", len(m))
	}
	return m
}

// fixedStore is a store that always gives the same answer.
type fixedStore struct {
	first bool
	err   error
}

func (s fixedStore) Spend(context.Context, seal.Use) (bool, error) { return s.first, s.err }

// ofServer returns the metrics of a server in which everything has happened that can happen.
func ofServer(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	must(t, err)
	observer, err := otelseal.New(otelseal.Config{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))})
	must(t, err)
	ctx := t.Context()
	for _, op := range []seal.Op{seal.OpSeal, seal.OpOpen, seal.OpDrop, cursor.OpIssue, cursor.OpOpen} {
		for _, reason := range []seal.Reason{"",
			seal.ReasonMalformed, seal.ReasonUnknownKey, seal.ReasonForged, seal.ReasonTooLarge, seal.ReasonVersion, seal.ReasonRequest,
			seal.ReasonArguments, seal.ReasonAudience, seal.ReasonUser, seal.ReasonExpired, seal.ReasonFromTheFuture, seal.ReasonFlowExpired,
			seal.ReasonTooManyRounds, seal.ReasonReplayed, seal.ReasonClaimMissing, seal.ReasonCodecFailed, seal.ReasonPrincipalFailed,
			seal.ReasonStoreFailed, seal.ReasonCanceled, seal.ReasonInvalidParams, seal.ReasonBadQuestions, seal.ReasonMisuse} {
			for _, method := range []string{"tools/call", "prompts/get", "resources/read"} {
				observer.Observe(ctx, seal.Event{Op: op, Reason: reason, Method: method, Target: "one", Format: "ms1.", TokenBytes: 1, StateBytes: 1, Dropped: 1})
			}
		}
	}
	inMemory, err := replay.NewSingleProcess(replay.Config{})
	must(t, err)
	observer.Store(inMemory)
	for _, a := range []fixedStore{{first: true}, {}, {err: replay.ErrFull}, {err: context.DeadlineExceeded}, {err: context.Canceled}, {err: errors.New("down")}} {
		observer.Store(a).Spend(ctx, seal.Use{})
	}
	observer.ObserveKeys(keys.Event{Path: "keys", Next: time.Now().Add(time.Hour)})
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

// newUpstream starts an MCP server that can stand behind a proxy, and returns its URL.
func newUpstream(t *testing.T) string {
	t.Helper()
	server := release.NewServer()
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(upstream.Close)
	return upstream.URL
}

// ofProxy returns the metrics of a proxy that has answered a request.
func ofProxy(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	newKeys(t, file)
	cmd := tripseal(t, "proxy", "--upstream", newUpstream(t)+"/mcp", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--keys", file,
		"--audience", "release.example.com", "--identity", "anonymous", "--single-use")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		io.Copy(io.Discard, out)
		cmd.Wait()
	}()
	lines := bufio.NewReader(out)
	var served [2]string // the addresses for operators and for clients
	for i := range served {
		line, err := lines.ReadString('\n')
		must(t, err)
		address, _ := strings.CutPrefix(line, "serving ")
		served[i], _, _ = strings.Cut(strings.TrimSpace(address), " ")
	}
	res, err := http.Post(served[1], "application/json", strings.NewReader(`{}`))
	must(t, err)
	res.Body.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // a request is counted when it has ended
		res, err := http.Get(served[0] + "/metrics")
		must(t, err)
		text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
		res.Body.Close()
		must(t, err)
		if strings.Contains(string(text), "\nhttp_server_request_duration_seconds_count{") || time.Now().After(deadline) {
			return string(text)
		}
	}
}
