package elicit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
	"github.com/tripseal/tripseal/gosdk/gosdktest"
)

type yes struct {
	OK bool `json:"ok"`
}

// requireYes is a helper for handlers that are registered with the SDK itself. It returns the
// result that the handler must return at once, or nil.
func requireYes(ctx context.Context, req *mcp.CallToolRequest, key, message string) (*mcp.CallToolResult, error) {
	pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
		answer, err := elicit.Form[yes](ask, key, message).Value()
		if err == nil && !answer.OK {
			err = &elicit.RefusedError{Key: key, Action: elicit.Decline}
		}
		return err
	})
	if refused := new(elicit.RefusedError); errors.As(err, &refused) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "**Declined.** Nothing was deleted."}}}, nil
	}
	if pending != nil {
		return pending.ToolResult(), nil
	}
	return nil, err
}

// markdown is a handler for the SDK. It asks two questions, with the helper requireYes.
func markdown(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, key := range []string{"first", "second"} {
		if result, err := requireYes(ctx, req, key, "Delete "+key+"?"); result != nil || err != nil {
			return result, err
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "# Deleted"}}}, nil
}

var anyObject = map[string]any{"type": "object"}

func TestAHandlerAsksDeepInside(t *testing.T) {
	for _, version := range []string{revision2026, revision2025} {
		for _, c := range []struct {
			answers []bool
			want    string
			asked   int
		}{{[]bool{true, true}, "# Deleted", 2}, {[]bool{true, false}, "**Declined.** Nothing was deleted.", 2}, {[]bool{false}, "**Declined.** Nothing was deleted.", 1}} {
			s := newService(t, nil)
			s.Server().AddTool(&mcp.Tool{Name: "delete", InputSchema: anyObject}, markdown)
			var asked []string
			session := connect(t, s.Server(), &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = append(asked, req.Params.Message)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": c.answers[len(asked)-1]}}, nil
			}}, version)
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete"})
			if err != nil || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != c.want || len(asked) != c.asked {
				t.Errorf("%s, %v: %+v, %v, after %q", version, c.answers, result, err, asked)
			}
		}
	}
}

// TestWhatIsRememberedWithinAHandlerIsRememberedByAllItsQuestions checks that later calls of
// Within do not forget the value of Once that the first call kept.
func TestWhatIsRememberedWithinAHandlerIsRememberedByAllItsQuestions(t *testing.T) {
	for _, version := range []string{revision2026, revision2025} {
		s := newService(t, nil)
		computed := 0
		s.Server().AddTool(&mcp.Tool{Name: "order", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var id int
			_, err := elicit.Within(ctx, req, func(ask *elicit.Asker) (err error) {
				id, err = elicit.Once(ask, "id", func() (int, error) { computed++; return computed, nil })
				return err
			})
			if err != nil {
				return nil, err
			}
			for _, key := range []string{"first", "second"} {
				if result, err := requireYes(ctx, req, key, fmt.Sprint(key, " for order ", id, "?")); result != nil || err != nil {
					return result, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("order ", id)}}}, nil
		})
		session := connect(t, s.Server(), &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		}}, version)
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "order"})
		if err != nil || result.Content[0].(*mcp.TextContent).Text != "order 1" || computed != 1 {
			t.Errorf("%s: %+v, %v, computed %d times", version, result, err, computed)
		}
	}
}

func TestAskingWithinPromptsAndResources(t *testing.T) {
	s := newService(t, nil)
	ask := func(ctx context.Context, req mcp.Request) (*elicit.Pending, error) {
		return elicit.Within(ctx, req, func(ask *elicit.Asker) error {
			_, err := elicit.Form[yes](ask, "k", "Really?").Value()
			return err
		})
	}
	s.Server().AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if pending, err := ask(ctx, req); err != nil || pending != nil {
			return pending.PromptResult(), err
		}
		return &mcp.GetPromptResult{Description: "done"}, nil
	})
	s.Server().AddResource(&mcp.Resource{Name: "r", URI: "r:1"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if pending, err := ask(ctx, req); err != nil || pending != nil {
			return pending.ResourceResult(), err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "r:1", Text: "done"}}}, nil
	})
	for _, version := range []string{revision2026, revision2025} {
		session := connect(t, s.Server(), &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		}}, version)
		prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
		if err != nil || prompt.Description != "done" {
			t.Errorf("%s: %+v, %v", version, prompt, err)
		}
		resource, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:1"})
		if err != nil || resource.Contents[0].Text != "done" {
			t.Errorf("%s: %+v, %v", version, resource, err)
		}
	}
}

// TestAskingWithinIsRefusedWhereNothingIsSealed checks that Within fails on a server that is not
// protected, and does not run the function that it got.
func TestAskingWithinIsRefusedWhereNothingIsSealed(t *testing.T) {
	s := newService(t, nil)
	unprotected := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	ran := false
	handler := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		pending, err := elicit.Within(ctx, req, func(*elicit.Asker) error { ran = true; return nil })
		if err == nil || pending != nil {
			t.Errorf("%v, %v", pending, err)
		}
		return nil, err
	}
	unprotected.AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, handler)
	// The tool "outer" of the protected server calls the unprotected server with the context that
	// "outer" got.
	s.Server().AddTool(&mcp.Tool{Name: "outer", InputSchema: anyObject}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return connectWith(ctx, t, unprotected).CallTool(ctx, &mcp.CallToolParams{Name: "t"})
	})
	if _, err := connect(t, unprotected, nil, revision2026).CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err == nil {
		t.Error("an unprotected server asks")
	}
	if _, err := connect(t, s.Server(), nil, revision2026).CallTool(t.Context(), &mcp.CallToolParams{Name: "outer"}); err == nil {
		t.Error("a server behind a protected one asks")
	}
	if ran {
		t.Error("the function ran")
	}
}

func TestAskingWithinNeedsAFormatWithTheWording(t *testing.T) {
	p := pythonService(t, 0)
	p.Server().AddTool(&mcp.Tool{Name: "delete", InputSchema: anyObject}, markdown)
	if _, err := connect(t, p.Server(), nil, revision2026).CallTool(t.Context(), &mcp.CallToolParams{Name: "delete"}); err == nil || !strings.Contains(err.Error(), "Internal error") {
		t.Errorf("a token that cannot say who wrote its state is sealed: %v", err)
	}
}

func TestAHandlerThatAsksWithinIsTestedByItself(t *testing.T) {
	result, err := markdown(gosdktest.Context(t), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "delete"}})
	if err != nil || len(result.InputRequests) != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}

// connectWith connects a client to the server, with the context of a handler.
func connectWith(ctx context.Context, t testing.TB, server *mcp.Server) *mcp.ClientSession {
	clientSide, serverSide := mcp.NewInMemoryTransports()
	session, err := server.Connect(ctx, serverSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	connected, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connected.Close(); session.Wait() })
	return connected
}

// TestAToolReturnsAFullResult checks that a tool can return its own content, with annotations,
// beside structured content.
func TestAToolReturnsAFullResult(t *testing.T) {
	s := newService(t, nil)
	elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "full"}, func(_ context.Context, ask *elicit.Asker, in args) (*mcp.CallToolResult, result, error) {
		if _, err := elicit.Form[yes](ask, "k", "Really?").Value(); err != nil {
			return nil, result{}, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "# Done", Annotations: &mcp.Annotations{Priority: 1}}}}, result{in.Dir}, nil
	})
	for _, version := range []string{revision2026, revision2025} {
		session := connect(t, s.Server(), &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		}}, version)
		got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "full", Arguments: map[string]any{"dir": "d"}})
		if err != nil || got.Content[0].(*mcp.TextContent).Text != "# Done" || got.Content[0].(*mcp.TextContent).Annotations == nil || fmt.Sprint(got.StructuredContent) != "map[done:d]" {
			t.Errorf("%s: %+v, %v", version, got, err)
		}
	}
}
