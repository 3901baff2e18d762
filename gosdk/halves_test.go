package gosdk_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// addAsker registers a tool that asks a question in the middle of its call.
func addAsker(server *mcp.Server) {
	server.AddTool(&mcp.Tool{Name: "asker", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, err := req.Session.Elicit(ctx, form("?")); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{}, nil
	})
}

// refusals calls every method whose result could have a token or a cursor, and returns their
// errors.
func refusals(t *testing.T, session *mcp.ClientSession) map[string]error {
	t.Helper()
	ctx, errs := t.Context(), make(map[string]error)
	_, errs["tools/call"] = callTool(t, session, &mcp.CallToolParams{Name: "steps"})
	_, errs["prompts/get"] = session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "purge"})
	_, errs["resources/read"] = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test:x"})
	_, errs["tools/list"] = session.ListTools(ctx, nil)
	_, errs["prompts/list"] = session.ListPrompts(ctx, nil)
	_, errs["resources/list"] = session.ListResources(ctx, nil)
	_, errs["resources/templates/list"] = session.ListResourceTemplates(ctx, nil)
	return errs
}

func TestSwappedHalvesServeNothing(t *testing.T) {
	for _, version := range []string{revision2026, revision2025} {
		b := &book{}
		server := newServer()
		tool := addSteps(server, "steps", 1)
		purge(server)
		receiving, sending := gosdk.Middleware(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
		server.AddReceivingMiddleware(sending)
		server.AddSendingMiddleware(receiving)
		for method, err := range refusals(t, connect(t, server, raw(), version)) {
			if wire(err) != internal {
				t.Errorf("%s, %s: %v", version, method, err)
			}
			if !strings.Contains(b.String(), "method="+method) {
				t.Errorf("%s: the log does not have %s: %s", version, method, b)
			}
		}
		if len(tool.log()) != 0 || !strings.Contains(b.String(), "swapped") {
			t.Errorf("%s: %v\n%s", version, tool.log(), b)
		}
	}
}

func TestTheReceivingHalfSendsNoQuestion(t *testing.T) {
	b := &book{}
	server := newServer()
	addAsker(server)
	receiving, _ := gosdk.Middleware(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	server.AddSendingMiddleware(receiving)
	if _, err := callTool(t, connect(t, server, answering(), revision2025), &mcp.CallToolParams{Name: "asker"}); err == nil {
		t.Error("the question was sent")
	}
	if !strings.Contains(b.String(), "swapped") {
		t.Errorf("the log: %s", b)
	}
}

// If the two halves of the middleware are on two servers, neither server may ask an older client a
// question. A server with only the receiving half could wait for an answer forever. A server with
// only the sending half would seal nothing.
func TestHalvesOnTwoServersServeNoOlderClient(t *testing.T) {
	for _, tool := range []string{"steps", "asker"} {
		for which := range 2 {
			b := &book{}
			receiver, sender := newServer(), newServer()
			receiving, sending := gosdk.Middleware(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
			receiver.AddReceivingMiddleware(receiving)
			sender.AddSendingMiddleware(sending)
			server := []*mcp.Server{receiver, sender}[which]
			addSteps(server, "steps", 1)
			addAsker(server)
			if _, err := callTool(t, connect(t, server, answering(), revision2025), &mcp.CallToolParams{Name: tool}); err == nil {
				t.Errorf("%s on server %d was served", tool, which)
			}
			if !strings.Contains(b.String(), "on one server") {
				t.Errorf("%s on server %d: the log: %s", tool, which, b)
			}
		}
	}
}

// A server with both halves of the middleware serves clients of both revisions. It may also ask a
// question that belongs to no call.
func TestBothHalvesOnOneServerServeEverybody(t *testing.T) {
	for _, version := range []string{revision2026, revision2025} {
		b, roots := &book{}, make(chan error, 1)
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
			InitializedHandler: func(_ context.Context, req *mcp.InitializedRequest) {
				go func() {
					_, err := req.Session.ListRoots(context.Background(), nil)
					roots <- err
				}()
			}})
		addSteps(server, "steps", 3)
		receiving, sending := gosdk.Middleware(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
		server.AddReceivingMiddleware(receiving)
		server.AddSendingMiddleware(sending)
		session := connect(t, server, answering(), version)
		if version == revision2025 {
			if err := <-roots; err != nil {
				t.Errorf("roots: %v", err)
			}
		}
		if result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); err != nil || text(result) != "done after 3" {
			t.Errorf("%s: %q, %v\n%s", version, text(result), err, b)
		}
	}
}
