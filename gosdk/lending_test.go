package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// lendingServer returns a replica with everything that hands out tokens or cursors: paged tools,
// tools that ask, and lists of several pages. Every caller is the same user, whose name is the
// parameter user.
func lendingServer(t *testing.T, b *book, ring *tripseal.Ring, audience, user string) *mcp.Server {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 2})
	protected := gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.Keys, c.Audience = ring, audience }), &gosdk.Options{
		Logger: b.logger(), User: func(context.Context, *mcp.RequestExtra) (string, error) { return user, nil },
	})
	endless := func(_ context.Context, _ *mcp.CallToolRequest, in listArgs, after *key) ([]row, *key, error) {
		if after == nil {
			after = &key{}
		}
		return []row{{after.ID, in.Prefix}}, &key{after.ID + 1}, nil
	}
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged1"}, endless, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged2"}, endless, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged3"}, endless, &gosdk.PageOptions{Cursor: "requestState"})
	addSteps(server, "asks", 2)
	for i := range 4 {
		server.AddPrompt(&mcp.Prompt{Name: fmt.Sprint(i)}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
		read := func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil }
		server.AddResource(&mcp.Resource{Name: fmt.Sprint(i), URI: fmt.Sprint("file:///", i)}, read)
		server.AddResourceTemplate(&mcp.ResourceTemplate{Name: fmt.Sprint(i), URITemplate: fmt.Sprintf("file:///%d/{x}", i)}, read)
	}
	return server
}

// place calls a tool or a list, and returns the token or the cursor that the server hands out.
// The parameter text is the token or the cursor to send, or "" in the first call.
type place func(ctx context.Context, s *mcp.ClientSession, text string) (next string, err error)

func pagedPlace(tool, cursor, prefix string) place {
	return func(ctx context.Context, s *mcp.ClientSession, text string) (string, error) {
		arguments := map[string]any{"prefix": prefix}
		if text != "" {
			arguments[cursor] = text
		}
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return "", err
		}
		page, _ := result.StructuredContent.(map[string]any)
		next, _ := page["nextCursor"].(string)
		if next == "" {
			return "", errors.New("a page without a cursor")
		}
		return next, nil
	}
}

func statePlace(tool, prefix string) place {
	return func(ctx context.Context, s *mcp.ClientSession, text string) (string, error) {
		result, err := s.CallTool(ctx, &mcp.CallToolParams{
			Name: tool, Arguments: map[string]any{"prefix": prefix}, RequestState: text,
			InputResponses: mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x", "ok": true}}},
		})
		if err != nil {
			return "", err
		}
		return result.RequestState, nil
	}
}

var places = map[string]place{
	"paged1 x":          pagedPlace("paged1", "cursor", "x"),
	"paged1 y":          pagedPlace("paged1", "cursor", "y"),
	"paged2 x":          pagedPlace("paged2", "cursor", "x"),
	"paged3 x":          pagedPlace("paged3", "requestState", "x"),
	"asks x":            statePlace("asks", "x"),
	"asks y":            statePlace("asks", "y"),
	"paged1 by a state": statePlace("paged1", "x"),
	"tools": func(ctx context.Context, s *mcp.ClientSession, text string) (string, error) {
		result, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: text})
		if err != nil {
			return "", err
		}
		return result.NextCursor, nil
	},
	"prompts": func(ctx context.Context, s *mcp.ClientSession, text string) (string, error) {
		result, err := s.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: text})
		if err != nil {
			return "", err
		}
		return result.NextCursor, nil
	},
	"resources": func(ctx context.Context, s *mcp.ClientSession, text string) (string, error) {
		result, err := s.ListResources(ctx, &mcp.ListResourcesParams{Cursor: text})
		if err != nil {
			return "", err
		}
		return result.NextCursor, nil
	},
	"templates": func(ctx context.Context, s *mcp.ClientSession, text string) (string, error) {
		result, err := s.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: text})
		if err != nil {
			return "", err
		}
		return result.NextCursor, nil
	},
}

// A token or a cursor works only for the user who got it, and only at the place that handed it
// out. The test sends all of them to every place, as every user, over both revisions, and to
// another service with the same keys.
func TestWhatOneUserGotAtOnePlaceWorksThereForThatUserAlone(t *testing.T) {
	var b book
	ring := tripseal.Ephemeral()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	type client struct{ service, user, revision string }
	type held struct {
		client
		place, text string
	}
	sessions := map[client]*mcp.ClientSession{}
	for _, c := range []client{{"one", "alice", revision2026}, {"one", "alice", revision2025}, {"one", "bob", revision2026}, {"two", "alice", revision2026}} {
		sessions[c] = connect(t, lendingServer(t, &b, ring, c.service, c.user), raw(), c.revision)
	}
	var all []held
	issued := map[string]int{}
	for c, session := range sessions {
		for name, place := range places {
			text, err := place(ctx, session, "")
			if text != "" && err == nil {
				all = append(all, held{c, name, text})
				issued[name]++
			}
		}
	}
	if len(issued) < len(places)-1 { // all places hand out something, except the one with the name "paged1 by a state"
		t.Errorf("issued: %v", issued)
	}
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]map[string]bool{}
	)
	for c, session := range sessions {
		group.Go(func() {
			for _, h := range all {
				for name, place := range places {
					_, err := place(ctx, session, h.text)
					if honest := h.service == c.service && h.user == c.user && h.place == name; (err == nil) != honest {
						t.Errorf("what %v got at %s, sent by %v to %s: %v", h.client, h.place, c, name, err)
					}
					if err != nil {
						mu.Lock()
						if answers[name] == nil {
							answers[name] = map[string]bool{}
						}
						answers[name][wireText(err)] = true
						mu.Unlock()
					}
				}
			}
		})
	}
	group.Wait()
	for name, said := range answers {
		if len(said) != 1 {
			t.Errorf("%s tells the reasons apart: %v", name, said)
		}
	}
}
