package gosdk_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

// A page has no place for a question. If a page handler asks with elicit.Within, its call fails,
// and the items, which should wait for the answer, are not sent.
func TestAPageHandlerThatAsksWithinGivesNoItems(t *testing.T) {
	type yes struct {
		Yes bool `json:"yes"`
	}
	for _, revision := range []string{revision2026, revision2025} {
		for how, failure := range map[string]error{"goes on": nil, "fails": errors.New("it is pending")} {
			b := &book{}
			server := newServer()
			protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: slog.New(slog.NewTextHandler(b, nil))})
			gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}, _ *key) ([]row, *key, error) {
				pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
					_, err := elicit.Form[yes](ask, "sure", "Sure?").Value()
					return err
				})
				if err != nil || pending == nil {
					t.Errorf("it was not asked: %v", err)
				}
				return []row{{1, "hush"}}, &key{1}, failure
			}, nil)
			result, err := callTool(t, connect(t, server, answering(), revision), &mcp.CallToolParams{Name: "t"})
			if wire(err) != `{"code":-32603,"message":"Internal error"}` || result != nil || !strings.Contains(b.String(), "level=ERROR") {
				t.Errorf("%s, a handler that %s: %+v, %v; the log: %s", revision, how, result, err, b)
			}
		}
	}
}
