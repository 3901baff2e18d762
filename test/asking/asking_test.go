// Package asking runs random handlers of package elicit on both SDKs, with random clients, and compares what the clients
// get.
package asking

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	gomcp "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

type value struct {
	Value string `json:"value"`
}

// program is a handler made of random questions. The words of a question have all that the handler knew when it asked,
// so that an answer that moves to another question shows.
type program struct {
	keys    []string
	version map[string]int // changes the words of a question, as a locale or a release does
	keeps   bool           // true if the handler keeps a value with Once
	ahead   bool           // true if the handler makes all questions before it reads the first answer
	faults  []string
}

func (p *program) handle(_ context.Context, ask *elicit.Asker, _ struct{}) (value, error) {
	known := ""
	for _, key := range p.keys {
		if p.ahead {
			elicit.Form[value](ask, key, p.words(key, ""))
		}
	}
	for _, key := range p.keys {
		words := p.words(key, known)
		if p.ahead {
			words = p.words(key, "")
		}
		if key == "q2" && p.keeps {
			kept, err := elicit.Once(ask, "kept", func() (string, error) { return known, nil })
			if err != nil {
				return value{}, err
			}
			if kept != known {
				p.faults = append(p.faults, fmt.Sprintf("a value was computed knowing %q, not %q", kept, known))
			}
		}
		action, answer, err := elicit.Form[value](ask, key, words).Outcome()
		if err != nil {
			return value{}, err
		}
		if action == elicit.Accept && answer.Value != words {
			p.faults = append(p.faults, fmt.Sprintf("%q was answered, not %q", answer.Value, words))
		}
		known += fmt.Sprint(" ", key, action)
	}
	return value{known}, nil
}

func (p *program) words(key, known string) string {
	return fmt.Sprintf("%s, version %d, after %s", key, p.version[key], known)
}

// replica is one server of a service, on one SDK, with one tool.
type replica struct {
	t       *testing.T
	deliver func(message string) (answer []byte)
}

type tool = func(context.Context, *elicit.Asker, struct{}) (value, error)

// services starts two replicas on each SDK, over HTTP and over standard input and output.
func services(t *testing.T, p *program) map[string][]replica {
	keys := tripseal.Ephemeral()
	all := map[string][]replica{}
	for range 2 {
		for _, sdk := range []string{"go-sdk", "mcp-go"} {
			all[sdk+" over HTTP"] = append(all[sdk+" over HTTP"], serve(t, sdk, keys, p.handle))
			all[sdk+" over stdio"] = append(all[sdk+" over stdio"], serveStdio(t, sdk, keys, p.handle))
		}
	}
	return all
}

func newEngine(t *testing.T, keys tripseal.KeySource) *wire.Engine {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	boundary, err := tripseal.New(tripseal.Config{Keys: keys, Audience: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func newGoSDK(handle tool) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "t"}, gosdk.AskingTool(handle))
	return srv
}

func newMCPGo(handle tool) *server.MCPServer {
	srv := server.NewMCPServer("test", "1", server.WithElicitation())
	srv.AddTool(gomcp.NewTool("t"), mcpgo.AskingTool(handle))
	return srv
}

// serve starts a server over HTTP, behind a door.
func serve(t *testing.T, sdk string, keys tripseal.KeySource, handle tool) replica {
	t.Helper()
	engine, options := newEngine(t, keys), wire.Options{AllowAnonymous: true}
	var handler http.Handler
	if sdk == "go-sdk" {
		srv := newGoSDK(handle)
		handler = engine.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: true}), options)
	} else {
		handler = mcpgo.Handler(newMCPGo(handle), engine, options)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return overHTTP(t, web.URL)
}

func overHTTP(t *testing.T, url string) replica {
	return replica{t, func(message string) []byte {
		q, err := http.NewRequest("POST", url, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28",
			"Mcp-Method": "tools/call", "Mcp-Name": "t",
		} {
			q.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				text = []byte(data)
			}
		}
		return text
	}}
}

// serveStdio starts a server over standard input and output, behind a door.
func serveStdio(t *testing.T, sdk string, keys tripseal.KeySource, handle tool) replica {
	t.Helper()
	engine := newEngine(t, keys)
	r, w := run(t, func(fromClient io.ReadCloser, toClient io.WriteCloser) {
		in, out := engine.Stdio(fromClient, toClient, tripseal.User("owner"))
		defer in.Close()
		if sdk == "go-sdk" {
			newGoSDK(handle).Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
			return
		}
		srv := newMCPGo(handle)
		mcpgo.Guard(srv, engine)
		server.NewStdioServer(srv).Listen(context.Background(), in, out)
	})
	lines := bufio.NewScanner(r)
	return replica{t, func(message string) []byte {
		if _, err := fmt.Fprintln(w, message); err != nil || !lines.Scan() {
			t.Fatal("the output has ended", err)
		}
		return lines.Bytes()
	}}
}

// run runs a server until the test ends. It returns the server's output and its input.
func run(t *testing.T, serve func(fromClient io.ReadCloser, toClient io.WriteCloser)) (io.ReadCloser, io.WriteCloser) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serve(fromClient, toClient)
	}()
	t.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
		<-ended
	})
	return fromServer, toServer
}

// reply is what a client gets.
type reply struct {
	Result struct {
		IsError           bool
		StructuredContent value
		InputRequests     map[string]any
		RequestState      string
	}
	Error *struct {
		Code    int
		Message string
	}
}

func (r replica) send(token, answers string) reply { return r.sendMeta(token, answers, "") }

// sendMeta sends a call with more members in its _meta.
func (r replica) sendMeta(token, answers, meta string) (got reply) {
	message := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}` + meta + `}`
	if token != "" {
		message += `,"requestState":"` + token + `","inputResponses":` + answers
	}
	text := r.deliver(message + "}}")
	if err := json.Unmarshal(text, &got); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	return got
}

// TestTheSameHandlerGivesTheSameRoundsOnBothSDKs sends both SDKs, over HTTP and stdio, the same random messages: answers that are late, that
// are dropped, that have another kind, that have a null, or that nobody asked for, and repeated rounds, while the words of the
// questions change back and forth. No answer counts for another question than the one that was shown.
func TestTheSameHandlerGivesTheSameRoundsOnBothSDKs(t *testing.T) {
	calls := uint64(40)
	if n, err := strconv.ParseUint(os.Getenv("TRIPSEAL_CALLS"), 10, 64); err == nil {
		calls = max(1, n/200)
	}
	p := new(program)
	all := services(t, p)
	const first = "go-sdk over HTTP"
	outcomes := map[string]int{}
	for seed := range calls {
		random := rand.New(rand.NewPCG(seed, 7))
		*p = program{keys: []string{"q0", "q1", "q2", "q3"}[:2+random.IntN(3)], version: map[string]int{}, keeps: random.IntN(4) == 0, ahead: random.IntN(4) == 0}
		type round struct {
			tokens  map[string]string
			answers string
		}
		next, earlier := round{tokens: map[string]string{}}, []round{}
		for n := range 15 {
			replies := map[string]reply{}
			at := random.IntN(2)
			for sdk, replicas := range all {
				replies[sdk] = replicas[at].send(next.tokens[sdk], next.answers)
			}
			if len(p.faults) > 0 {
				t.Fatalf("seed %d: %s", seed, p.faults)
			}
			got := replies[first]
			got.Result.RequestState = ""
			next = round{tokens: map[string]string{}}
			for name, other := range replies {
				next.tokens[name], other.Result.RequestState = other.Result.RequestState, ""
				if !reflect.DeepEqual(got, other) {
					t.Fatalf("seed %d, round %d: %s %+v, %s %+v", seed, n, first, got, name, other)
				}
			}
			if next.tokens[first] == "" {
				switch {
				case got.Error != nil:
					outcomes[got.Error.Message]++
				case got.Result.IsError:
					outcomes["a tool error"]++
				default:
					outcomes["done"]++
				}
				break
			}
			if random.IntN(4) == 0 { // the client's locale changes, perhaps back
				key := fmt.Sprint("q", random.IntN(4))
				p.version[key] = max(0, p.version[key]+1-2*random.IntN(2))
			}
			given := map[string]json.RawMessage{}
			for _, key := range slices.Sorted(maps.Keys(got.Result.InputRequests)) {
				words, _ := json.Marshal(got.Result.InputRequests[key].(map[string]any)["params"].(map[string]any)["message"])
				switch random.IntN(12) {
				case 0: // dropped
				case 1:
					given[key] = json.RawMessage(`{"action":"decline"}`)
				case 2:
					given[key] = json.RawMessage([]string{`{"roots":[]}`, `{"action":null}`, `{"action":"accept","role":"user"}`}[random.IntN(3)])
				case 3:
					given[key] = json.RawMessage(`{"action":"accept","content":{"value":` + string(words) + `,"more":null}}`)
				default:
					given[key] = json.RawMessage(`{"action":"accept","content":{"value":` + string(words) + `}}`)
				}
			}
			if key := fmt.Sprint("q", random.IntN(4)); given[key] == nil && got.Result.InputRequests[key] == nil {
				given[key] = json.RawMessage(`{"action":"accept","content":{"value":"forged"}}`)
			}
			text, err := json.Marshal(given)
			if err != nil {
				t.Fatal(err)
			}
			next.answers = string(text)
			if len(earlier) > 0 && n < 8 && random.IntN(8) == 0 { // the client repeats a round
				next = earlier[random.IntN(len(earlier))]
			}
			earlier = append(earlier, next)
		}
	}
	if uint64(outcomes["done"]) < calls/2 {
		t.Errorf("the calls ended with %v", outcomes)
	}
}
