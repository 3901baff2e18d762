package gosdk_test

import (
	"fmt"
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

func TestASecondInstallationFailsAtOnce(t *testing.T) {
	server := newServer()
	protection := gosdk.Prepare(boundary(t, &book{}, nil), nil)
	protection.Install(server)
	for name, again := range map[string]func(){
		"Protect":  func() { gosdk.Protect(server, boundary(t, &book{}, nil), nil) },
		"the same": func() { protection.Install(server) },
	} {
		if panicked := panicOf(again); !strings.Contains(panicked, "protected already") {
			t.Errorf("%s: %q", name, panicked)
		}
	}
}

func panicOf(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
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
