package suite

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// A mutant is a change that breaks promises of a protected server.
type mutant struct {
	change func(*Server)
	breaks []string
}

var mutants = map[string]mutant{
	"everybody is alice": {func(s *Server) {
		s.Principal = func(context.Context, string) (string, error) { return "alice", nil }
	}, []string{
		"tool: two users cannot use each other's states",
		"tool: a state of a user is rejected for nobody, and the reverse",
		"users who call at once get their own states",
		"list of tools: a cursor of another user is refused",
	}},
	"an empty name is nobody": {func(s *Server) { s.AllowAnonymous = true }, []string{
		"tool: an empty name fails the check",
	}},
	"failed principals are nobody": {func(s *Server) {
		principal := s.Principal
		s.AllowAnonymous = true
		s.Principal = func(ctx context.Context, user string) (name string, err error) {
			defer func() { recover() }()
			name, _ = principal(ctx, user)
			return name, nil
		}
	}, []string{
		"tool: a principal that fails is a rejection like any other",
		"tool: a principal that panics is a rejection like any other",
		"list of tools: a principal that fails refuses the cursor",
	}},
	"a text of its own": {func(s *Server) { s.RejectedText = "start over" }, []string{
		"tool: all rejections look the same",
		"tool: a state for a target that does not exist is rejected like any other",
	}},
	"no RejectedText": {func(s *Server) { s.RejectedText = "" }, []string{
		"RejectedText is the rejection of tools alone",
	}},
	"one audience": {configured(func(c *tripseal.Config) { c.Audience = "fixed" }), []string{
		"tool: a state of another service is rejected",
		"list of tools: a cursor of another service is refused",
	}},
	"one key, no wording": {configured(func(c *tripseal.Config) { c.Keys, c.Format = sharedKeys, nil }), []string{
		"tool: a state under other keys is rejected",
		"tool: an expired state is rejected",
		"tool: a codec that fails tells the client nothing",
		"tool: a state whose token pins the wording of its questions never reaches the handler",
	}},
	"no store": {configured(func(c *tripseal.Config) { c.Replay = nil }), []string{
		"tool: a state works once if it must",
	}},
	"never asks again": {configured(func(c *tripseal.Config) { c.AskAgain = 0 }), []string{
		"tool: a rejected state can be asked for again",
	}},
	"wide limits": {configured(func(c *tripseal.Config) {
		c.MaxState, c.MaxArguments, c.MaxRounds = 1<<16, 4<<20, 100
	}), []string{
		"tool: a flow ends at its last round",
		"tool: a state that is too long is not sealed",
		"tool: arguments that are too long are refused",
	}},
	"users are optional": {configured(func(c *tripseal.Config) { c.RequireUser = false }), []string{
		"tool: a user is required if the boundary says so",
		"list of tools: a cursor needs a user if the boundary says so",
	}},
	"no observer": {configured(func(c *tripseal.Config) { c.Observer = nil }), []string{
		"tool: every seal and every open is one event",
		"tool: the event of a rejection has the reason",
		"tool: answers that were dropped are an event",
		"list of tools: a refused cursor is one event, with a reason",
	}},
	"no target": {forgetting(func(b *tripseal.Binding) { b.Target = "" }), []string{
		"tool: a state for another target is rejected",
		"tool: a rejected state is not used up",
	}},
	"no method": {forgetting(func(b *tripseal.Binding) { b.Method = "" }), []string{
		"a state for a tool is rejected for the prompt of its name",
	}},
	"no arguments": {forgetting(func(b *tripseal.Binding) { b.Arguments = nil }), []string{
		"tool: a state with other arguments is rejected",
		"tool: arguments of every type are bound",
		"tool: numbers that a float64 cannot tell apart are told apart",
		"tool: names that differ only in case cannot be swapped",
		"tool: what arrived is bound, whatever the handler does to its arguments",
		"tool: the arguments that the handler sees are bound, however they are spelt",
	}},
	"arguments byte by byte": {forgetting(func(b *tripseal.Binding) {
		b.Arguments = fmt.Appendf(nil, "%q", b.Arguments)
	}), []string{
		"tool: arguments may be spelt differently",
		"tool: numbers that Go misreads are refused",
		"tool: arguments that name a member twice are refused",
	}},
	"arguments by chance": {forgetting(func(b *tripseal.Binding) {
		b.Arguments = fmt.Appendf(nil, "%q", rand.Text())
	}), []string{
		"tool: names that differ only in case may be sent again",
	}},
	"states are lost": {handling(func(handle Handler, ctx context.Context, call Call) (Result, error) {
		call.State = ""
		return handle(ctx, call)
	}), []string{
		"tool: a handler sees its state and the answer",
		"tool: a flow has several rounds",
		"tool: a state needs no question",
		"tool: answers of an earlier round never reach the handler",
	}},
	"answers are lost": {handling(func(handle Handler, ctx context.Context, call Call) (Result, error) {
		call.Answers = nil
		return handle(ctx, call)
	}), []string{
		"tool: a question needs no state",
		"tool: what comes with a no never reaches the handler",
	}},
	"errors are rejections": {handling(func(handle Handler, ctx context.Context, call Call) (Result, error) {
		result, err := handle(ctx, call)
		if err != nil {
			err = tripseal.ErrRejected
		}
		return result, err
	}), []string{
		"tool: an error of a handler is not a rejection",
	}},
	"every call asks": {handling(func(handle Handler, ctx context.Context, call Call) (Result, error) {
		result, err := handle(ctx, call)
		if result.Questions == nil {
			result.Questions = map[string]tripseal.Kind{}
		}
		return result, err
	}), []string{
		"tool: a call that asks nothing gets no token",
		"tool: a state on a complete result never leaves",
	}},
}

// TestEveryPromiseCanBeBroken checks that each promise fails without any protection, or with a mutant that was
// made for it: a test that cannot fail is worth nothing. The promises about prompts, resources and their lists
// repeat those about tools, and are left out.
func TestEveryPromiseCanBeBroken(t *testing.T) {
	all := make(map[string]promise)
	kept := make(map[string]bool)
	for _, promise := range promises() {
		of, _, found := strings.Cut(promise.name, ": ")
		if !found || of == "tool" || of == "list of tools" {
			all[promise.name] = promise
			kept[promise.name] = len(promise.run(t, system{start: startBare})) == 0
		}
	}
	for name, mutant := range mutants {
		mutated := system{start: func(t *testing.T, server Server) Client {
			mutant.change(&server)
			return startOfficial(t, server)
		}}
		for _, broken := range mutant.breaks {
			if promise, ok := all[broken]; !ok || len(promise.run(t, mutated)) == 0 {
				t.Errorf("%s: %q is kept, or is no promise", name, broken)
			}
			delete(kept, broken)
		}
	}
	for name, unbroken := range kept {
		if unbroken {
			t.Errorf("nothing breaks %q", name)
		}
	}
}

// configured returns a change to the boundary's config.
func configured(change func(*tripseal.Config)) func(*Server) {
	return func(s *Server) {
		config := s.Boundary.Config()
		change(&config)
		boundary, err := tripseal.New(config)
		if err != nil {
			panic(err)
		}
		s.Boundary = boundary
	}
}

var sharedKeys = tripseal.Ephemeral()

// forgetting returns a change to what tokens are bound to.
func forgetting(forget func(*tripseal.Binding)) func(*Server) {
	return configured(func(config *tripseal.Config) {
		if config.Keys != nil {
			config.Format, config.Keys = looseFormat{tripseal.NativeFormat(config.Keys), forget}, nil
		}
	})
}

type looseFormat struct {
	tripseal.Format
	forget func(*tripseal.Binding)
}

func (f looseFormat) Digest(b *tripseal.Binding) ([]byte, error) {
	f.forget(b)
	return f.Format.Digest(b)
}

func (f looseFormat) Seal(ctx context.Context, b *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	f.forget(b)
	return f.Format.Seal(ctx, b, claims)
}

func (f looseFormat) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	f.forget(b)
	return f.Format.Open(ctx, b, token)
}

// handling returns a change to what handlers get and return.
func handling(change func(Handler, context.Context, Call) (Result, error)) func(*Server) {
	return func(s *Server) {
		for _, handlers := range []map[string]Handler{s.Tools, s.Prompts, s.Resources, s.Templates} {
			for name, handle := range handlers {
				handlers[name] = func(ctx context.Context, call Call) (Result, error) { return change(handle, ctx, call) }
			}
		}
	}
}

// survivePanics makes handlers of the official SDK return their panics as errors, because that SDK would end the
// process.
var survivePanics = handling(func(handle Handler, ctx context.Context, call Call) (_ Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return handle(ctx, call)
})

// startBare makes a server of the official SDK that nothing protects. It survives a handler's panic, and takes an
// empty state for one that it does not know.
func startBare(_ *testing.T, s Server) Client {
	survivePanics(&s)
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: s.PageSize})
	client := serveOfficial(server, s)
	return func(user string, request []byte) []byte {
		return client(user, bytes.ReplaceAll(request, []byte(`"requestState":""`), []byte(`"requestState":7`)))
	}
}
