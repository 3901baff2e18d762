package elicit_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

var askRequest = tripseal.Request{Method: "tools/call", Target: "ask"}

// recordedState returns a state that elicit wrote, with the recorded answer "forged" to the
// question "a".
func recordedState(t *testing.T, s service, session *mcp.ClientSession) string {
	t.Helper()
	token := round(t, session, "ask", round(t, session, "ask", nil, nil), answers("a", "forged")).RequestState
	r, err := s.Boundary().Open(t.Context(), askRequest, token)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := r.State()
	if !strings.Contains(state, "forged") {
		t.Fatalf("the state is %s", state)
	}
	return state
}

// TestAStateThatElicitDidNotWriteIsNoState checks that elicit ignores the state of another tool
// with the same name, even if that state looks like a state that elicit wrote. The other tool may
// be on another server of the boundary, or in an earlier release. Its state may be any text that a
// client sent.
func TestAStateThatElicitDidNotWriteIsNoState(t *testing.T) {
	s := newService(t, nil)
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	forged := recordedState(t, s, session)

	// The server "other" also has a tool "ask". This tool sends the question that elicit sent, but
	// with the forged state.
	question := round(t, session, "ask", round(t, session, "ask", nil, nil), answers("a", "x")).InputRequests["b"]
	server := mcp.NewServer(&mcp.Implementation{Name: "other", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"b": question}, RequestState: forged}, nil
	})
	gosdk.Protect(server, s.Boundary(), nil)
	token := round(t, connect(t, server, reply(nil).options(true), revision2026), "ask", nil, nil)
	if got := text(round(t, session, "ask", token, answers("b", "y")), nil); got != "ASKS [a]" {
		t.Errorf("a forged answer counts: %s", got)
	}

	// The state does not count if the questions in the token are not those in the state, or if the
	// token has no questions.
	digest := [16]byte{1}
	for name, questions := range map[string][]tripseal.Question{
		"no wording":      {{Key: "b", Kind: tripseal.KindForm}},
		"another wording": {{Key: "b", Kind: tripseal.KindForm, Digest: digest}},
		"another key":     {{Key: "a", Kind: tripseal.KindForm, Digest: digest}},
		"none":            nil,
	} {
		r, _ := s.Boundary().Open(t.Context(), askRequest, "")
		token, err := s.Boundary().Seal(t.Context(), &r, &forged, questions...)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(round(t, session, "ask", &mcp.CallToolResult{RequestState: token}, answers("b", "y")), nil); got != "ASKS [a]" {
			t.Errorf("%s: a forged answer counts: %s", name, got)
		}
	}
	for _, got := range tool.got {
		if strings.Contains(got, "forged") {
			t.Errorf("the handler saw %s", got)
		}
	}
}

// TestAStateThatWasReplacedIsRefused checks that a call fails if inner middleware replaces the
// state of elicit with a text of the client.
func TestAStateThatWasReplacedIsRefused(t *testing.T) {
	var forged string
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if r, ok := result.(*mcp.CallToolResult); ok && r.NeedsInput() && forged != "" {
				r.RequestState = forged
			}
			return result, err
		}
	})
	s := newService(t, nil)
	protected := gosdk.Protect(server, s.Boundary(), &gosdk.Options{Logger: s.book.logger()})
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, server, reply(nil).options(true), revision2026)
	state := recordedState(t, service{Protected: protected}, session)
	asked := round(t, session, "ask", round(t, session, "ask", nil, nil), answers("a", "1"))
	forged = state
	got := text(call(t, session, &mcp.CallToolParams{Name: "ask", RequestState: asked.RequestState, InputResponses: mcp.InputResponseMap{}}))
	if got != internal || !strings.Contains(s.book.String(), "what elicit asks was changed") {
		t.Errorf("%s; the log: %s", got, s.book)
	}
}

// TestTwoServersOfOneBoundaryAreOneService checks that a call may begin on one server of a
// boundary and continue on another, because one boundary is one service.
func TestTwoServersOfOneBoundaryAreOneService(t *testing.T) {
	s := newService(t, nil)
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	second := gosdk.Protect(mcp.NewServer(&mcp.Implementation{Name: "second", Version: "2"}, nil), s.Boundary(), nil)
	elicit.AddTool(second, &mcp.Tool{Name: "ask"}, tool.handle)
	one, other := connect(t, s.Server(), reply(nil).options(true), revision2026), connect(t, second.Server(), reply(nil).options(true), revision2026)
	asked := round(t, other, "ask", round(t, one, "ask", nil, nil), answers("a", "1"))
	if got := text(round(t, one, "ask", asked, answers("b", "2")), nil); got != `{"done":"a=accept:1,b=accept:2"}` {
		t.Error(got)
	}
	// Another service has another audience.
	apart := newService(t, func(c *tripseal.Config) { c.Keys, c.Audience = s.keys, "another" })
	elicit.AddTool(apart.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, apart.Server(), reply(nil).options(true), revision2026)
	if got := text(call(t, session, &mcp.CallToolParams{Name: "ask", RequestState: asked.RequestState, InputResponses: answers("b", "2")})); got != invalidState {
		t.Error(got)
	}
}

// pythonService returns a service whose tokens say neither what was asked nor who asked it. The
// service also waives the claims in alsoWaived.
func pythonService(t *testing.T, alsoWaived tripseal.ClaimSet) *gosdk.Protected {
	t.Helper()
	format, err := compat.Python([][]byte{[]byte("0123456789abcdef0123456789abcdef")}, compat.PythonOptions{})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	boundary, err := tripseal.New(tripseal.Config{Format: format, Waive: tripseal.ClaimQuestions | tripseal.ClaimFlow | alsoWaived, Audience: "test", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	return gosdk.Protect(mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), boundary, &gosdk.Options{Logger: logger})
}

func TestAFormatWithoutWordingNeedsAWaiverByName(t *testing.T) {
	tool := &asking{wording: map[string]string{"a": "A?"}, order: []string{"a"}}
	func() {
		defer func() {
			if problem, _ := recover().(string); !strings.Contains(problem, "tripseal.ClaimElicit") {
				t.Errorf("registered: %q", problem)
			}
		}()
		elicit.AddTool(pythonService(t, 0), &mcp.Tool{Name: "ask"}, tool.handle)
	}()
	both(t, func(t *testing.T, revision string) {
		p := pythonService(t, tripseal.ClaimElicit)
		elicit.AddTool(p, &mcp.Tool{Name: "ask"}, tool.handle)
		if got := text(call(t, connect(t, p.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "ask"})); got != `{"done":"a=accept:to A?"}` {
			t.Error(got)
		}
	})
}

// unsealedFormat returns the format for unsealed states of the tool "ask", with every claim waived.
func unsealedFormat(t *testing.T) tripseal.Accepted {
	t.Helper()
	format, err := compat.Plaintext([]string{"ask"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return tripseal.Accepted{Format: format, Waive: tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser |
		tripseal.ClaimQuestions | tripseal.ClaimFlow | tripseal.ClaimSingleUse | tripseal.ClaimElicit}
}

func TestAnUnsealedFormatIsRefusedWhateverIsWaived(t *testing.T) {
	plain, logger := unsealedFormat(t), slog.New(slog.DiscardHandler)
	boundary, err := tripseal.New(tripseal.Config{
		Format: plain.Format, Waive: plain.Waive, AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(tripseal.Ephemeral())}},
		Audience: "test", Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := gosdk.Protect(mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), boundary, &gosdk.Options{Logger: logger})
	tool := &asking{wording: map[string]string{"a": "A?"}, order: []string{"a"}}
	defer func() {
		if problem, _ := recover().(string); !strings.Contains(problem, "tripseal.ClaimElicit") {
			t.Errorf("registered: %q", problem)
		}
	}()
	elicit.AddTool(p, &mcp.Tool{Name: "ask"}, tool.handle)
}

// TestAnUnsealedStateIsNoStateOfElicit checks that a call with an unsealed state counts as a new
// call, so its answers do not count. This holds although the operator allows unsealed states for
// the tool and waives the wording.
func TestAnUnsealedStateIsNoStateOfElicit(t *testing.T) {
	s := newService(t, func(c *tripseal.Config) { c.AlsoOpen = []tripseal.Accepted{unsealedFormat(t)} })
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	forged := recordedState(t, s, session)
	for _, answer := range []mcp.InputResponseMap{nil, answers("a", "x"), answers("b", "x")} {
		if got := text(round(t, session, "ask", &mcp.CallToolResult{RequestState: forged}, answer), nil); got != "ASKS [a]" {
			t.Errorf("a forged answer counts: %s", got)
		}
	}
}

// TestWhereTheWordingIsWaivedAStateIsStillChecked checks what must be right even if the wording is
// waived: a state must have the right version, a recorded answer must have a known action, and a
// new answer must have the right kind.
func TestWhereTheWordingIsWaivedAStateIsStillChecked(t *testing.T) {
	p := pythonService(t, tripseal.ClaimElicit)
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(p, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, p.Server(), reply(nil).options(true), revision2026)
	state := recordedState(t, service{Protected: p}, session)
	send := func(state string) string {
		t.Helper()
		r, _ := p.Boundary().Open(t.Context(), askRequest, "")
		token, err := p.Boundary().Seal(t.Context(), &r, &state)
		if err != nil {
			t.Fatal(err)
		}
		return text(round(t, session, "ask", &mcp.CallToolResult{RequestState: token}, nil), nil)
	}
	if got := send(state); got != "ASKS [b]" {
		t.Fatalf("the state as it was: %s", got)
	}
	for _, change := range [][2]string{{`"v":2`, `"v":1`}, {`"v":2`, `"v":0`}, {`"o":"accept"`, `"o":"agreed"`}, {`"o":"accept"`, `"o":""`}} {
		changed := strings.Replace(state, change[0], change[1], 1)
		if changed == state {
			t.Fatalf("%s is not in %s", change[0], state)
		}
		if got := send(changed); got != "ASKS [a]" {
			t.Errorf("with %s: %s", change[1], got)
		}
	}
	asked := round(t, session, "ask", nil, nil)
	for name, answer := range map[string]mcp.InputResponse{
		"roots":    &mcp.ListRootsResult{Roots: []*mcp.Root{{URI: "file:///"}}},
		"a sample": &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "x"}}},
	} {
		if got := text(round(t, session, "ask", asked, mcp.InputResponseMap{"a": answer}), nil); got != "ASKS [a]" {
			t.Errorf("%s for a form: %s", name, got)
		}
	}
}

// TestARecordOfAnotherKindIsNoAnswer asks for roots and for a sample, and sends answers of other
// kinds. They must not count, even on a server whose tokens do not say what was asked.
func TestARecordOfAnotherKindIsNoAnswer(t *testing.T) {
	p := pythonService(t, tripseal.ClaimElicit)
	elicit.AddTool(p, &mcp.Tool{Name: "roots"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		_, err := elicit.Roots(ask, "k").Value()
		return result{"done"}, err
	})
	elicit.AddTool(p, &mcp.Tool{Name: "sample"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		_, err := elicit.Sample(ask, "k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{}}).Value()
		return result{"done"}, err
	})
	roots, sample := &mcp.ListRootsResult{Roots: []*mcp.Root{}}, &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "x"}}}
	session := connect(t, p.Server(), reply(nil).options(true), revision2026)
	for tool, wrong := range map[string][]mcp.InputResponse{
		"roots":  {sample, accept(map[string]any{"roots": []any{}}), &mcp.ElicitResult{Action: "decline"}},
		"sample": {roots, accept(nil), &mcp.ElicitResult{Action: "cancel"}},
	} {
		asked := round(t, session, tool, nil, nil)
		for _, answer := range wrong {
			if got := text(round(t, session, tool, asked, mcp.InputResponseMap{"k": answer}), nil); got != "ASKS [k]" {
				t.Errorf("%T for %s: %s", answer, tool, got)
			}
		}
	}
}
