package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/replay"
)

// fleet is two replicas behind a load balancer.
type fleet struct {
	replicas []*replica
	next     atomic.Uint64
}

func newFleet(keysFile string) (*fleet, error) {
	if err := writeKeys(keysFile); err != nil {
		return nil, err
	}
	store, err := replay.NewSingleProcess(replay.Config{}) // the replicas are in one process, so they may share this store
	if err != nil {
		return nil, err
	}
	f := new(fleet)
	for _, name := range []string{"replica-1", "replica-2"} {
		r, err := startReplica(name, keysFile, store)
		if err != nil {
			f.close()
			return nil, err
		}
		f.replicas = append(f.replicas, r)
	}
	return f, nil
}

func (f *fleet) close() {
	for _, r := range f.replicas {
		r.stop()
	}
}

// spans returns the spans of all replicas, in the order of their start.
func (f *fleet) spans() (all []span, err error) {
	for _, r := range f.replicas {
		spans, err := r.spans()
		if err != nil {
			return nil, err
		}
		all = append(all, spans...)
	}
	slices.SortFunc(all, func(a, b span) int { return a.StartTime.Compare(b.StartTime) })
	return all, nil
}

// asUser sends the requests of one user to the replicas in turn.
type asUser struct {
	fleet *fleet
	user  string
}

func (t asUser) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	replicas := t.fleet.replicas
	request.URL.Host = replicas[t.fleet.next.Add(1)%uint64(len(replicas))].host
	request.Header.Set("Authorization", "Bearer "+t.user)
	return http.DefaultTransport.RoundTrip(request)
}

// client connects as a user. If automatic is true, the client answers questions by itself;
// otherwise the caller gets the questions of every round.
func (f *fleet) client(ctx context.Context, user string, automatic bool) (*mcp.ClientSession, error) {
	options := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return answer(request.Params.Message), nil
	}}
	if !automatic {
		options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "telemetry", Version: "1.0.0"}, options).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: "http://127.0.0.1/mcp", HTTPClient: &http.Client{Transport: asUser{f, user}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
}

func answer(question string) *mcp.ElicitResult {
	if question == "In which region?" {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "eu"}}
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}
}

var frontend = map[string]any{"service": "frontend", "version": "1.4.2"}

// flow makes one honest call as alice, with two questions in three rounds.
func (f *fleet) flow(ctx context.Context) error {
	alice, err := f.client(ctx, "alice", true)
	if err != nil {
		return err
	}
	defer alice.Close()
	result, err := alice.CallTool(ctx, &mcp.CallToolParams{Name: "deploy", Arguments: frontend})
	if err == nil && len(result.Content) != 1 {
		err = fmt.Errorf("the flow ended with %+v", result)
	}
	return err
}

// load makes honest calls and attacks. It fails if an attack is accepted, or an honest
// call is refused.
func (f *fleet) load(ctx context.Context) error {
	for range 10 {
		if err := f.flow(ctx); err != nil {
			return err
		}
	}
	alice, err := f.client(ctx, "alice", false)
	if err != nil {
		return err
	}
	defer alice.Close()
	bob, err := f.client(ctx, "bob", false)
	if err != nil {
		return err
	}
	defer bob.Close()

	call := func(by *mcp.ClientSession, tool, token string, arguments map[string]any, more ...string) (*mcp.CallToolResult, error) {
		params := &mcp.CallToolParams{Name: tool, Arguments: arguments, RequestState: token}
		if token != "" {
			params.InputResponses = mcp.InputResponseMap{"confirm": answer("Really?")}
			for _, key := range more {
				params.InputResponses[key] = answer("Really?")
			}
		}
		return by.CallTool(ctx, params)
	}
	first, err := call(alice, "deploy", "", frontend)
	if err != nil {
		return err
	}
	token := first.RequestState
	other := map[string]any{"service": "frontend", "version": "6.6.6"}
	for _, attack := range []struct {
		reason, token string
		by            *mcp.ClientSession
		tool          string
		arguments     map[string]any
	}{
		{"user", token, bob, "deploy", frontend},
		{"arguments", token, alice, "deploy", other},
		{"request", token, alice, "rollback", frontend},
		{"malformed", "step=2&traffic=100", alice, "deploy", frontend},
		{"forged", forge(token), alice, "deploy", frontend},
	} {
		for range 3 {
			if _, err := call(attack.by, attack.tool, attack.token, attack.arguments); err == nil {
				return errors.New("accepted although it should be rejected: " + attack.reason)
			}
		}
	}
	// Answers that nobody asked for are dropped. The call still uses the token, so the
	// token does not work again.
	for range 2 {
		first, err := call(alice, "deploy", "", frontend)
		if err != nil {
			return err
		}
		if _, err := call(alice, "deploy", first.RequestState, frontend, "discount", "admin"); err != nil {
			return err
		}
		if _, err := call(alice, "deploy", first.RequestState, frontend); err == nil {
			return errors.New("a token was used twice")
		}
	}

	// Alice reads three pages, and Bob tries each of her cursors.
	arguments := map[string]any{"service": "frontend"}
	for pages := 1; ; pages++ {
		page, err := call(alice, "list_versions", "", arguments)
		if err != nil {
			return err
		}
		content, _ := page.StructuredContent.(map[string]any)
		cursor, _ := content["nextCursor"].(string)
		if cursor == "" {
			if pages != 3 {
				return fmt.Errorf("%d pages", pages)
			}
			return nil
		}
		arguments = map[string]any{"service": "frontend", "cursor": cursor}
		for range 2 {
			if result, err := call(bob, "list_versions", "", arguments); err == nil && !result.IsError {
				return errors.New("bob uses a cursor of alice")
			}
		}
	}
}

// forge changes one character in the middle of a token.
func forge(token string) string {
	i := len(token) / 2
	return token[:i] + cmp.Or(strings.Trim("A", token[i:i+1]), "B") + token[i+1:]
}
