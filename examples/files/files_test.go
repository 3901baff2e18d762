package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/attacks"
	"github.com/tripseal/tripseal/test/mutate"
	"github.com/tripseal/tripseal/replay"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise every server would log that its keys are ephemeral
	os.Exit(m.Run())
}

var shapes = []string{"middleware", "handler"}

// start serves two replicas of the server, on the same drive. Protected replicas also share their
// keys and the used tokens, as replicas in production must.
func start(t testing.TB, newReplica func(*drive) (http.Handler, error)) attacks.Fleet {
	t.Helper()
	drive := newDrive()
	fleet := attacks.Fleet{Alice: "token-of-alice", Bob: "token-of-bob", Holds: drive.String, Reset: drive.reset}
	for i := range fleet.URLs {
		handler, err := newReplica(drive)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(handler)
		t.Cleanup(web.Close)
		fleet.URLs[i] = web.URL
	}
	return fleet
}

func protected(shape string) func(testing.TB) attacks.Fleet {
	return func(t testing.TB) attacks.Fleet {
		t.Helper()
		once, err := replay.NewSingleProcess(replay.Config{})
		if err != nil {
			t.Fatal(err)
		}
		config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com", Replay: once}
		key := tripseal.GenerateKey()
		return start(t, func(d *drive) (http.Handler, error) { return newService(shape, d, config, key) })
	}
}

// trustingSealer is the sealer for servers without tripseal. It does not check states.
type trustingSealer struct{ plaintext }

func (trustingSealer) Open(_ context.Context, req *mcp.CallToolRequest) (openedRound, error) {
	return openedRound{state: req.Params.RequestState, answers: req.Params.InputResponses}, nil
}

func unprotected(t testing.TB) attacks.Fleet {
	t.Helper()
	return start(t, func(d *drive) (http.Handler, error) {
		s := service{drive: d, sealer: trustingSealer{}}
		return d.usersOnly(mcp.NewStreamableHTTPHandler(s.newServer, &mcp.StreamableHTTPOptions{Stateless: true})), nil
	})
}

func target(start func(testing.TB) attacks.Fleet) attacks.Target {
	return attacks.Target{
		Start: start,
		Tool:  "delete_file", Other: "archive_file",
		Arguments: map[string]any{"path": "report.txt"}, OtherArguments: map[string]any{"path": "photo.jpg"},
		Yes: map[string]any{"confirm": json.RawMessage(`{"action":"accept","content":{"ok":true}}`)},
		// Tamper changes the state, so that Alice's answer deletes the file of the same name in
		// Bob's folder.
		Tamper: func(c *attacks.Call) bool {
			readable := c.State == "" || c.State == "alice"
			if readable {
				c.State = "bob"
			}
			return readable
		},
	}
}

func TestAttacksAreRefusedInBothShapes(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) { attacks.AreRefused(t, target(protected(shape))) })
	}
}

func TestEveryAttackWorksWithoutTripseal(t *testing.T) {
	attacks.Work(t, target(unprotected))
}

func TestAFlowBeginsOnOneReplicaAndEndsOnTheOther(t *testing.T) {
	for _, shape := range shapes {
		fleet := protected(shape)(t)
		call := attacks.Call{Bearer: fleet.Alice, Tool: "delete_file", Arguments: map[string]any{"path": "report.txt"}}
		asked := fleet.Send(t, call)
		if !asked.Asks() || strings.Contains(asked.State, "alice") {
			t.Errorf("%s: %s", shape, asked)
		}
		call.Replica, call.State, call.Answers = 1, asked.State, target(nil).Yes
		done := fleet.Send(t, call)
		if held := fleet.Holds(); done.Text != "Delete report.txt: done." || held != "alice/photo.jpg, bob/photo.jpg, bob/report.txt" {
			t.Errorf("%s: %s, holds %s", shape, done, held)
		}
	}
}

func TestBothRevisionsAreServedInBothShapes(t *testing.T) {
	for _, shape := range shapes {
		for _, revision := range []string{mutate.Newer, mutate.Older} {
			for answer, want := range map[string]string{
				`{"action":"accept","content":{"ok":true}}`:  "Archive report.txt: done.",
				`{"action":"accept","content":{"ok":false}}`: "Nothing was changed.",
				`{"action":"decline"}`:                       "Nothing was changed.",
			} {
				fleet := protected(shape)(t)
				before := fleet.Holds()
				client := mutate.Client{URL: fleet.URLs[0], Bearer: fleet.Bob, HTTP: http.DefaultClient}
				outcome, err := client.Call(t.Context(), mutate.Call{
					Revision: revision, Method: "tools/call",
					Params: map[string]any{"name": "archive_file", "arguments": map[string]any{"path": "report.txt"}},
					Answer: func(mutate.Question) any { return json.RawMessage(answer) },
				})
				if err != nil || outcome.String() != want || fleet.Holds() == before != (want == "Nothing was changed.") {
					t.Errorf("%s, %s, %s: %s, %v, holds %s", shape, revision, answer, outcome, err, fleet.Holds())
				}
			}
		}
	}
}

func TestAServerWithoutItsInstallLineActsForNobody(t *testing.T) {
	fleet := start(t, func(d *drive) (http.Handler, error) {
		s := service{drive: d, sealer: plaintext{}}
		return d.usersOnly(mcp.NewStreamableHTTPHandler(s.newServer, &mcp.StreamableHTTPOptions{Stateless: true})), nil
	})
	before := fleet.Holds()
	for _, state := range []string{"", "alice"} {
		reply := fleet.Send(t, attacks.Call{
			Bearer: fleet.Alice, Tool: "delete_file", Arguments: map[string]any{"path": "report.txt"}, State: state, Answers: target(nil).Yes,
		})
		if reply.Message == "" || reply.Asks() || fleet.Holds() != before {
			t.Errorf("%q: %s", state, reply)
		}
	}
}

func TestInventedTokensAndPathsOutsideAreRefused(t *testing.T) {
	for _, shape := range shapes {
		fleet := protected(shape)(t)
		for _, path := range []string{"../bob/report.txt", "/etc/passwd", ""} {
			reply := fleet.Send(t, attacks.Call{Bearer: fleet.Alice, Tool: "delete_file", Arguments: map[string]any{"path": path}})
			if reply.Asks() || reply.Text != "There is no such path." {
				t.Errorf("%s, %q: %s", shape, path, reply)
			}
		}
		for _, authorization := range []string{"", "Bearer token-of-mallory", "token-of-alice"} {
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`))
			request.Header.Set("Authorization", authorization)
			handler, err := newService(shape, newDrive(), tripseal.Config{Keys: tripseal.Ephemeral()}, tripseal.GenerateKey())
			if err != nil {
				t.Fatal(err)
			}
			recorder := httptest.NewRecorder()
			if handler.ServeHTTP(recorder, request); recorder.Code != http.StatusUnauthorized {
				t.Errorf("%s, %q: %d", shape, authorization, recorder.Code)
			}
		}
	}
}

func TestAnUnknownShapeIsRefused(t *testing.T) {
	if _, err := newService("none", newDrive(), tripseal.Config{Keys: tripseal.Ephemeral()}, tripseal.GenerateKey()); err == nil {
		t.Error("a server without protection was made")
	}
}
