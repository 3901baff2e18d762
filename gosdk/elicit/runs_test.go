package elicit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
)

// twice is inner middleware that runs the handler of a tool twice, and drops what the
// first run returned.
func twice(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/call" {
			next(ctx, method, req)
		}
		return next(ctx, method, req)
	}
}

// withinHandler returns an SDK handler that calls elicit.Within with the given function.
func withinHandler(ask func(*elicit.Asker) error) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if pending, err := elicit.Within(ctx, req, ask); pending != nil || err != nil {
			return pending.ToolResult(), err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deleted"}}}, nil
	}
}

const askedTwice = "ask under the key confirm, or inner middleware ran the handler twice"

// TestAKeyOfAnEarlierCallOfWithinIsRefused checks that two calls of Within cannot use the same key.
// A call of Within and the handler itself cannot share a key either. Otherwise one yes would count
// for several actions.
func TestAKeyOfAnEarlierCallOfWithinIsRefused(t *testing.T) {
	same := func(req *mcp.CallToolRequest) *mcp.CallToolRequest { return req }
	shallow := func(req *mcp.CallToolRequest) *mcp.CallToolRequest { copied := *req; return &copied }
	deep := func(req *mcp.CallToolRequest) *mcp.CallToolRequest {
		params := *req.Params
		return &mcp.CallToolRequest{Session: req.Session, Extra: req.Extra, Params: &params}
	}
	again := func(with func(*mcp.CallToolRequest) *mcp.CallToolRequest) func(context.Context, *mcp.CallToolRequest, func()) (*mcp.CallToolResult, error) {
		return func(ctx context.Context, req *mcp.CallToolRequest, act func()) (*mcp.CallToolResult, error) {
			for range 3 {
				if result, err := requireYes(ctx, with(req), "confirm", "Are you sure?"); result != nil || err != nil {
					return result, err
				}
				act()
			}
			return &mcp.CallToolResult{}, nil
		}
	}
	// askDirectly asks a question without a call of Within. Its handler was registered with elicit.
	askDirectly := func(ask *elicit.Asker, act func()) error {
		answer, err := elicit.Form[yes](ask, "confirm", "Are you sure?").Value()
		if err == nil && answer.OK {
			act()
		}
		return err
	}
	type add func(s service, act func())
	plain := func(with func(*mcp.CallToolRequest) *mcp.CallToolRequest) add {
		return func(s service, act func()) {
			s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return again(with)(ctx, req, act)
			})
		}
	}
	own := func(handler func(ctx context.Context, ask *elicit.Asker, req *mcp.CallToolRequest, act func()) (*mcp.CallToolResult, error)) add {
		return func(s service, act func()) {
			elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
				result, err := handler(ctx, ask, ask.Request().(*mcp.CallToolRequest), act)
				return result, nil, err
			})
		}
	}
	for name, add := range map[string]add{
		"the same request": plain(same),
		"a copy":           plain(shallow),
		"a deep copy":      plain(deep),
		"in a handler of elicit": own(func(ctx context.Context, _ *elicit.Asker, req *mcp.CallToolRequest, act func()) (*mcp.CallToolResult, error) {
			return again(same)(ctx, req, act)
		}),
		"after a question of the handler itself": own(func(ctx context.Context, ask *elicit.Asker, req *mcp.CallToolRequest, act func()) (*mcp.CallToolResult, error) {
			if err := askDirectly(ask, act); err != nil {
				return nil, err
			}
			return again(same)(ctx, req, act)
		}),
		"before a question of the handler itself": own(func(ctx context.Context, ask *elicit.Asker, req *mcp.CallToolRequest, act func()) (*mcp.CallToolResult, error) {
			result, err := requireYes(ctx, req, "confirm", "Are you sure?")
			if result == nil && err == nil {
				act()
				err = askDirectly(ask, act)
			}
			return result, err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := newService(t, nil)
				acted := 0
				add(s, func() { acted++ })
				got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"}))
				if got != internal || acted != 1 || !strings.Contains(s.book.String(), askedTwice) {
					t.Errorf("%s, acted %d times; the log: %s", got, acted, s.book)
				}
			})
		})
	}
}

// TestAHandlerThatAsksWithinIsNotRunTwice checks a handler that calls Within. The call must fail if
// inner middleware runs the handler twice in one round and drops the first result. Otherwise the
// second run would go on with the questions and the mistakes of the first run. The test has no
// older client. With an older client, the SDK gets the answer to the first run's question at once,
// and the second run starts anew.
func TestAHandlerThatAsksWithinIsNotRunTwice(t *testing.T) {
	for name, c := range map[string]struct {
		ask func(ask *elicit.Asker, run *int) error
		log string
	}{
		"the dropped run asked": {func(ask *elicit.Asker, run *int) error {
			if *run++; *run > 1 {
				return nil
			}
			_, err := elicit.Form[yes](ask, "confirm", "Delete?").Value()
			return err
		}, "returned a Pending"},
		"the dropped run asked other words": {func(ask *elicit.Asker, run *int) error {
			*run++
			_, err := elicit.Form[yes](ask, "confirm", fmt.Sprint("Delete ", *run, " files?")).Value()
			return err
		}, "returned a Pending"},
		"the dropped run failed": {func(ask *elicit.Asker, run *int) error {
			elicit.Form[yes](ask, "confirm", "Delete?")
			if *run++; *run == 1 {
				return errors.New("try again")
			}
			return nil
		}, askedTwice},
	} {
		t.Run(name, func(t *testing.T) {
			s := serviceBehind(t, twice)
			run := 0
			s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, withinHandler(func(ask *elicit.Asker) error { return c.ask(ask, &run) }))
			got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision2026), &mcp.CallToolParams{Name: "t"}))
			if got != internal || !strings.Contains(s.book.String(), c.log) {
				t.Errorf("%s; the log: %s", got, s.book)
			}
		})
	}
}

// TestAReadOfARunThatWasDroppedDoesNotCount checks that a call fails if only a dropped run has
// read a refusal. Inner middleware runs the handler twice in the second round, and drops the
// first of these runs.
func TestAReadOfARunThatWasDroppedDoesNotCount(t *testing.T) {
	calls := 0
	s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				if calls++; calls == 2 {
					next(ctx, method, req)
				}
			}
			return next(ctx, method, req)
		}
	})
	run := 0
	s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, withinHandler(func(ask *elicit.Asker) error {
		confirm := elicit.Form[yes](ask, "confirm", "Delete?")
		if _, err := elicit.Form[yes](ask, "other", "Other?").Value(); err != nil {
			return err
		}
		if run++; run == 1 {
			confirm.Outcome()
			return errors.New("try again")
		}
		return nil
	}))
	u := reply(map[string]*mcp.ElicitResult{"Delete?": {Action: "decline"}})
	got := text(call(t, connect(t, s.Server(), u.options(false), revision2026), &mcp.CallToolParams{Name: "t"}))
	if got != internal || len(u.messages()) != 2 || !strings.Contains(s.book.String(), askedTwice) {
		t.Errorf("%s, asked %q; the log: %s", got, u.messages(), s.book)
	}
}

// TestAHandlerOfElicitMayRunTwice checks that inner middleware may run a handler of elicit twice,
// even if the handler has helpers that call Within. The two runs share nothing.
func TestAHandlerOfElicitMayRunTwice(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := serviceBehind(t, twice)
		elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
			if _, err := elicit.Form[yes](ask, "first", "First?").Value(); err != nil {
				return nil, nil, err
			}
			if result, err := requireYes(ctx, ask.Request().(*mcp.CallToolRequest), "second", "Second?"); result != nil || err != nil {
				return result, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
		if got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"})); got != "done" {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

// TestAskingWithinAfterAPendingResultIsRefused checks that a handler cannot call Within again after
// it has ignored a Pending. Otherwise the question in the Pending would be lost. The second call of
// Within gets the same request or a copy.
func TestAskingWithinAfterAPendingResultIsRefused(t *testing.T) {
	for name, with := range map[string]func(*mcp.CallToolRequest) *mcp.CallToolRequest{
		"the same request": func(req *mcp.CallToolRequest) *mcp.CallToolRequest { return req },
		"a copy":           func(req *mcp.CallToolRequest) *mcp.CallToolRequest { copied := *req; return &copied },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := newService(t, nil)
				s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					elicit.Within(ctx, req, func(ask *elicit.Asker) error {
						_, err := elicit.Form[yes](ask, "confirm", "Delete?").Value()
						return err
					})
					if _, err := elicit.Within(ctx, with(req), func(*elicit.Asker) error { return nil }); err != nil {
						return nil, err
					}
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deleted"}}}, nil
				})
				got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"}))
				if got != internal || !strings.Contains(s.book.String(), "returned a Pending") {
					t.Errorf("%s; the log: %s", got, s.book)
				}
			})
		})
	}
}
