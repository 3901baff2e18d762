package gosdk_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// One Protection is installed on a new server for each call. One server asks, and another server
// gets the answer.
func TestOneProtectionServesManyServers(t *testing.T) {
	b := &book{}
	protection := gosdk.Prepare(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	install := func() *mcp.Server {
		server := newServer()
		if protected := protection.Install(server); protected.Server() != server || protected.Boundary() != protection.Boundary() {
			t.Fatal("the handle is of another server")
		}
		addSteps(server, "steps", 1)
		return server
	}
	asked, err := callTool(t, connect(t, install(), raw(), revision2026), &mcp.CallToolParams{Name: "steps"})
	if err != nil || !strings.HasPrefix(asked.RequestState, "ms1.") {
		t.Fatalf("%+v, %v", asked, err)
	}
	answered, err := callTool(t, connect(t, install(), raw(), revision2026), &mcp.CallToolParams{
		Name: "steps", RequestState: asked.RequestState,
		InputResponses: mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "yes"}}},
	})
	if err != nil || text(answered) != "done after 1" {
		t.Errorf("the second server: %q, %v", text(answered), err)
	}
	older, err := callTool(t, connect(t, install(), answering(), revision2025), &mcp.CallToolParams{Name: "steps"})
	if err != nil || text(older) != "done after 1" {
		t.Errorf("an older client: %q, %v", text(older), err)
	}
}

// Some warnings are logged only once. A Protection logs them once for all its servers, not once for
// each server.
func TestWhatIsSaidOnceIsSaidOnceForAllServers(t *testing.T) {
	b := &book{}
	protection := gosdk.Prepare(boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), Unsolicited: []string{"no-such-tool"}})
	for range 3 {
		server := newServer()
		protection.Install(server)
		addSteps(server, "steps", 1)
		session := connect(t, server, answering(), revision2026)
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, said := range []string{"answers to questions that nobody asked", "check its spelling"} {
		if n := strings.Count(b.String(), said); n != 1 {
			t.Errorf("%q is said %d times:\n%s", said, n, b)
		}
	}
}

func TestASecondInstallationFailsAtOnce(t *testing.T) {
	b := &book{}
	other := gosdk.Prepare(boundary(t, b, nil), nil)
	for name, install := range map[string]func(*mcp.Server){
		"Protect":            func(s *mcp.Server) { gosdk.Protect(s, boundary(t, b, nil), nil) },
		"another Protection": func(s *mcp.Server) { other.Install(s) },
		"behind a middleware": func(s *mcp.Server) {
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					return next(ctx, method, req)
				}
			})
			other.Install(s)
		},
	} {
		server := newServer()
		protection := gosdk.Prepare(boundary(t, b, nil), nil)
		protection.Install(server)
		for what, again := range map[string]func(*mcp.Server){name: install, "the same": func(s *mcp.Server) { protection.Install(s) }} {
			if panicked := panicOf(func() { again(server) }); !strings.Contains(panicked, "protected already") {
				t.Errorf("%s: %q", what, panicked)
			}
		}
	}
	if panicked := panicOf(func() { other.Install(nil) }); !strings.Contains(panicked, "needs a server") {
		t.Errorf("no server: %q", panicked)
	}
}

func panicOf(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

// A Protection does not keep its servers in memory, because a service may make a server for each
// request.
func TestProtectedServersAreForgotten(t *testing.T) {
	protection := gosdk.Prepare(boundary(t, &book{}, nil), nil)
	install := func() weak.Pointer[mcp.Server] {
		server := newServer()
		protection.Install(server)
		return weak.Make(server)
	}
	server := install()
	for range 100 {
		if runtime.GC(); server.Value() == nil {
			return
		}
	}
	t.Error("a protected server is kept")
}

func TestInstallCostsThreeAllocationsAtMost(t *testing.T) {
	protection := gosdk.Prepare(boundary(t, &book{}, nil), nil)
	empty := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(ctx, method, req)
		}
	}
	const runs = 500
	servers := make([]*mcp.Server, 0, 2*runs+2)
	for range cap(servers) {
		servers = append(servers, newServer())
	}
	next := func() (s *mcp.Server) { s, servers = servers[0], servers[1:]; return s }
	base := testing.AllocsPerRun(runs, func() {
		s := next()
		s.AddReceivingMiddleware(empty)
		s.AddSendingMiddleware(empty)
	})
	if ours := testing.AllocsPerRun(runs, func() { protection.Install(next()) }); ours > base+3 {
		t.Errorf("%v allocations, two empty middlewares have %v", ours, base)
	}
}
