package asking

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// olderServers starts a server on each SDK, over HTTP and over standard input and output, as one protects it for clients
// of both revisions: the official SDK with its middleware, mcp-go with a door.
func olderServers(t *testing.T, p *program) map[string]mcp.Transport {
	all := map[string]mcp.Transport{}
	overPipes := func(serve func(fromClient io.ReadCloser, toClient io.WriteCloser)) mcp.Transport {
		r, w := run(t, serve)
		return &mcp.IOTransport{Reader: r, Writer: w}
	}
	web := func(handler http.Handler) mcp.Transport {
		web := httptest.NewServer(handler)
		t.Cleanup(web.Close)
		return &mcp.StreamableClientTransport{Endpoint: web.URL}
	}
	newProtected := func() *mcp.Server {
		srv := newGoSDK(p.handle)
		gosdk.Protect(srv, newEngine(t, tripseal.Ephemeral()).Boundary(), &gosdk.Options{AllowAnonymous: true, Logger: slog.New(slog.DiscardHandler)})
		return srv
	}
	srv := newProtected()
	all["go-sdk over HTTP"] = web(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	all["go-sdk over stdio"] = overPipes(func(fromClient io.ReadCloser, toClient io.WriteCloser) {
		newProtected().Run(context.Background(), &mcp.IOTransport{Reader: fromClient, Writer: toClient})
	})
	all["mcp-go over HTTP"] = web(mcpgo.Handler(newMCPGo(p.handle), newEngine(t, tripseal.Ephemeral()), wire.Options{AllowAnonymous: true}))
	all["mcp-go over stdio"] = overPipes(func(fromClient io.ReadCloser, toClient io.WriteCloser) {
		engine, srv := newEngine(t, tripseal.Ephemeral()), newMCPGo(p.handle)
		mcpgo.Guard(srv, engine)
		in, out := engine.Stdio(fromClient, toClient, tripseal.User("owner"))
		defer in.Close()
		server.NewStdioServer(srv).Listen(context.Background(), in, out)
	})
	return all
}

// TestAnOlderClientGetsTheSameQuestionsOnBothSDKs calls the same random handlers with a published client of the revision
// 2025-11-25, whose SDK is asked in the middle of the call. The questions, in their order, and the result are the same
// on both SDKs, over HTTP and stdio, while the words of the questions change back and forth.
func TestAnOlderClientGetsTheSameQuestionsOnBothSDKs(t *testing.T) {
	p := new(program)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var random *rand.Rand
	var asked []string
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, req.Params.Message)
			if len(asked) < 6 && random.IntN(4) == 0 { // the client's locale changes, perhaps back; mcp-go asks in at most 10 rounds
				key := fmt.Sprint("q", random.IntN(4))
				p.version[key] = max(0, p.version[key]+1-2*random.IntN(2))
			}
			switch random.IntN(8) {
			case 0:
				return &mcp.ElicitResult{Action: "decline"}, nil
			case 1:
				return &mcp.ElicitResult{Action: "cancel"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": req.Params.Message}}, nil
		},
	})
	sessions := map[string]*mcp.ClientSession{}
	for name, transport := range olderServers(t, p) {
		session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(name, err)
		}
		defer session.Close()
		sessions[name] = session
	}
	done := 0
	calls := uint64(40)
	for seed := range calls {
		var questions []string
		said, from := "", ""
		for name, session := range sessions {
			random, asked = rand.New(rand.NewPCG(seed, 8)), nil
			*p = program{keys: []string{"q0", "q1", "q2", "q3"}[:2+random.IntN(3)], version: map[string]int{}, keeps: random.IntN(4) == 0}
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "t", Arguments: map[string]any{}})
			if len(p.faults) > 0 {
				t.Fatalf("seed %d, %s: %s", seed, name, p.faults)
			}
			got := fmt.Sprint("an error: ", err)
			if err == nil {
				got = fmt.Sprint(result.IsError, result.StructuredContent)
				done++
			}
			if from == "" {
				questions, said, from = asked, got, name
			}
			if got != said || !slices.Equal(asked, questions) {
				t.Errorf("seed %d: %s asks %q and ends with %s, but %s asks %q and ends with %s", seed, name, asked, got, from, questions, said)
			}
		}
	}
	if uint64(done) < calls*2 {
		t.Errorf("%d calls were done", done)
	}
}
