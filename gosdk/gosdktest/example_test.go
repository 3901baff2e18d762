package gosdktest_test

import (
	"bytes"
	"context"
	"crypto/fips140"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/gosdktest"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/sealtest"
)

// release is a handler that asks once.
func release(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	step, asked, err := gosdk.State[string](ctx, req)
	if err != nil {
		return nil, err
	}
	answer, _ := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
	switch {
	case !asked || answer == nil:
		result := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Message: "Release it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
		}}}
		return result, gosdk.SetState(ctx, req, result, "asked")
	case step != "asked" || answer.Action != "accept" || answer.Content["ok"] != true:
		return nil, errors.New("not confirmed")
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "released"}}}, nil
}

// newServer makes the server as the program does, with the given boundary and options.
func newServer(boundary *tripseal.Boundary, options *gosdk.Options) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	server.AddTool(&mcp.Tool{Name: "release", InputSchema: map[string]any{"type": "object"}}, release)
	gosdk.Protect(server, boundary, options)
	return server
}

var (
	version = map[string]any{"version": "1.2"}
	yes     = gosdktest.Accept("confirm", map[string]any{"ok": true})
)

func ExampleConnect() {
	var t *testing.T // the parameter t of your test

	alice := gosdktest.Connect(t, newServer(sealtest.Boundary(t), nil), nil)
	asked := alice.CallTool("release", version)
	if done := asked.Attack(yes); done.Text() != "released" {
		t.Error(done.Text())
	}
	if stolen := asked.Answer(yes, gosdktest.By(gosdktest.Bob)); !stolen.Rejected() {
		t.Error(stolen.Text())
	}
}

func TestTheHandlerAsks(t *testing.T) {
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "release"}}
	result, err := release(gosdktest.Context(t), req)
	if err != nil || result.InputRequests["confirm"] == nil {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAReleaseIsConfirmed(t *testing.T) {
	alice := gosdktest.Connect(t, newServer(sealtest.Boundary(t), nil), nil)
	asked := alice.CallTool("release", version)
	if done := asked.Answer(yes); done.Text() != "released" {
		t.Error(done.Text())
	}
	no := gosdktest.Accept("confirm", map[string]any{"ok": false})
	if done := asked.Answer(no); done.Err == nil || done.Rejected() {
		t.Error(done.Text())
	}
}

func TestBothRevisionsAreServed(t *testing.T) {
	for _, older := range []bool{false, true} {
		alice := gosdktest.Connect(t, newServer(sealtest.Boundary(t), nil), &gosdktest.Options{
			Older: older,
			Client: &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
			}},
		})
		if done := alice.CallTool("release", version); done.Text() != "released" {
			t.Error(older, done.Text())
		}
	}
}

func TestAReleaseWithstandsAttacks(t *testing.T) {
	alice := gosdktest.Connect(t, newServer(sealtest.Boundary(t), nil), nil)
	asked := alice.CallTool("release", version)
	if done := asked.Attack(yes); done.Text() != "released" {
		t.Error(done.Text())
	}
}

func TestAConfirmationIsForOneUserOneVersionAndOnce(t *testing.T) {
	once, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var events sealtest.Events
	boundary := sealtest.BoundaryWith(t, tripseal.Config{Replay: once, Observer: events.Observe})
	alice := gosdktest.Connect(t, newServer(boundary, nil), nil)
	asked := alice.CallTool("release", version)
	for _, attack := range []gosdktest.Change{
		gosdktest.Tamper,
		gosdktest.By(gosdktest.Bob),
		gosdktest.With(map[string]any{"version": "6.6.6"}),
		gosdktest.To("destroy"),
	} {
		if got := asked.Answer(yes, attack); !got.Rejected() {
			t.Error(got.Text())
		}
	}
	if got := asked.Answer(yes, gosdktest.Strip); !got.Asks() {
		t.Error(got.Text())
	}
	if done := asked.Answer(yes); done.Text() != "released" {
		t.Error(done.Text())
	}
	if replayed := asked.Answer(yes); !replayed.Rejected() {
		t.Error(replayed.Text())
	}
	want := []tripseal.Reason{"forged", "user", "arguments", "request", "replayed"}
	if got := events.Reasons(); !slices.Equal(got, want) {
		t.Error(got)
	}
}

func TestAConfirmationExpires(t *testing.T) {
	if fips140.Enabled() {
		t.Skip("the random source of FIPS 140-3 measures time, which stands still in a bubble")
	}
	synctest.Test(t, func(t *testing.T) {
		var events sealtest.Events
		boundary := sealtest.BoundaryWith(t, tripseal.Config{TTL: 10 * time.Minute, Observer: events.Observe})
		alice := gosdktest.Connect(t, newServer(boundary, nil), nil)
		asked := alice.CallTool("release", version)
		time.Sleep(9 * time.Minute) // passes at once in a bubble
		if done := asked.Answer(yes); done.Text() != "released" {
			t.Error(done.Text())
		}
		time.Sleep(2 * time.Minute)
		if late := asked.Answer(yes); !late.Rejected() || !slices.Equal(events.Reasons(), []tripseal.Reason{tripseal.ReasonExpired}) {
			t.Error(late.Text(), events.Reasons())
		}
	})
}

func TestTheGatewayNamesTheUser(t *testing.T) {
	server := newServer(sealtest.Boundary(t), &gosdk.Options{
		User: func(_ context.Context, extra *mcp.RequestExtra) (string, error) {
			return extra.Header.Get("X-Verified-User"), nil
		},
	})
	alice := gosdktest.Connect(t, server, &gosdktest.Options{Extra: func(user string) *mcp.RequestExtra {
		return &mcp.RequestExtra{Header: http.Header{"X-Verified-User": {user}}}
	}})
	alice.CallTool("release", version).Attack(yes)
}

type traceKey struct{}

// traced adds the trace of the request to each record.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, record slog.Record) error {
	trace, _ := ctx.Value(traceKey{}).(string)
	record.AddAttrs(slog.String("trace", trace))
	return h.Handler.Handle(ctx, record)
}

func TestLogAndObserverGetTheTrace(t *testing.T) {
	var log bytes.Buffer
	var observed []any
	server := newServer(sealtest.BoundaryWith(t, tripseal.Config{
		Logger:   slog.New(traced{slog.NewTextHandler(&log, nil)}),
		Observer: func(ctx context.Context, _ tripseal.Event) { observed = append(observed, ctx.Value(traceKey{})) },
	}), nil)
	// This middleware is added after the call of Protect, so it runs before the middleware of
	// Protect.
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(context.WithValue(ctx, traceKey{}, "trace-1"), method, req)
		}
	})
	alice := gosdktest.Connect(t, server, nil)
	alice.CallTool("release", version).Answer(yes, gosdktest.Tamper)
	if !strings.Contains(log.String(), "reason=forged") || !strings.Contains(log.String(), "trace=trace-1") {
		t.Errorf("the log: %s", &log)
	}
	if !slices.Equal(observed, []any{"trace-1", "trace-1"}) { // an event for the seal, and one for the rejection
		t.Errorf("the observer: %v", observed)
	}
}
