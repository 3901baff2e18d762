package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

type DeleteArgs struct {
	Dir string `json:"dir"`
}

type Deleted struct {
	Text string `json:"text"`
}

type Confirm struct {
	OK bool `json:"ok" jsonschema:"really delete them?"`
}

type Reason struct {
	Why string `json:"why"`
}

func withElicit(_ context.Context, ask *elicit.Asker, in DeleteArgs) (Deleted, error) {
	confirm, err := elicit.Form[Confirm](ask, "confirm", "Delete everything in "+in.Dir+"?").Value()
	if err != nil {
		return Deleted{}, err
	}
	if !confirm.OK {
		return Deleted{}, errors.New("not confirmed")
	}
	reason, err := elicit.Form[Reason](ask, "reason", "Why?").Value()
	if err != nil {
		return Deleted{}, err
	}
	return Deleted{"deleted " + in.Dir + ": " + reason.Why}, nil
}

// sure asks for a confirmation, in any function that a handler calls.
func sure(ctx context.Context, key, message string) error {
	answer, err := elicit.Form[Confirm](elicit.From(ctx), key, message).Value()
	if err == nil && !answer.OK {
		err = errors.New("the user unticked the box")
	}
	return err
}

var connectIDs sync.Map

func connectAccount(ctx context.Context, ask *elicit.Asker, in DeleteArgs) (Deleted, error) {
	id, err := elicit.Once(ask, "connect", func() (string, error) {
		id := newID()
		connectIDs.Store(id, userOf(ctx)) // who it is for
		return id, nil
	})
	if err != nil {
		return Deleted{}, err
	}
	consent := elicit.URL(ask, "connect", "Connect your account", "https://files.example.com/connect/"+id)
	if _, err := consent.Value(); err != nil {
		return Deleted{}, err
	}
	if !connected(id) {
		return Deleted{}, consent.NotYet() // the same question again
	}
	return Deleted{"deleted " + in.Dir}, nil
}

// connectPage is what the URL leads to.
func connectPage(w http.ResponseWriter, r *http.Request) {
	who, known := connectIDs.Load(r.PathValue("id"))
	if !known || who == "" || who != userOf(r.Context()) {
		http.Error(w, "this link is somebody else's", http.StatusForbidden)
		return
	}
	fmt.Fprintln(w, "connected")
}

func newID() string                     { return "1" }
func userOf(ctx context.Context) string { user, _ := ctx.Value("user").(string); return user }
func connected(string) bool             { return true }

// A handler that opens and seals by itself makes the arrival of the round, and seals what is pending.
func ExampleRun() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	serve := func(ctx context.Context, token string, answers map[string]json.RawMessage) (result any, requestState string, err error) {
		round, err := boundary.Open(ctx, tripseal.Request{Method: "tools/call", Target: "delete"}, token)
		if err != nil {
			return nil, "", err
		}
		state, _ := round.Elicit()
		ctx = elicit.Arrive(ctx, &elicit.Arrival{Method: "tools/call", Target: "delete", State: state, Answers: answers})
		var done Deleted
		pending, err := elicit.Run(ctx, elicit.Call{Method: "tools/call", Target: "delete"}, func(ctx context.Context, ask *elicit.Asker) (err error) {
			done, err = withElicit(ctx, ask, DeleteArgs{Dir: "/tmp"})
			return err
		})
		if pending == nil {
			return done, "", err
		}
		token, err = boundary.Seal(ctx, &round, &pending.State, pending.Asked()...)
		return pending.Questions, token, err
	}

	token := ""
	for _, answers := range []map[string]json.RawMessage{
		nil,
		{"confirm": json.RawMessage(`{"action":"accept","content":{"ok":true}}`)},
		{"reason": json.RawMessage(`{"action":"accept","content":{"why":"they are old"}}`)},
	} {
		var result any
		if result, token, err = serve(context.Background(), token, answers); err != nil {
			log.Fatal(err)
		}
		text, err := json.Marshal(result)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(text))
	}
	// Output:
	// {"confirm":{"method":"elicitation/create","params":{"message":"Delete everything in /tmp?","mode":"form","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean","description":"really delete them?"}},"required":["ok"]}}}}
	// {"reason":{"method":"elicitation/create","params":{"message":"Why?","mode":"form","requestedSchema":{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}}}}
	// {"text":"deleted /tmp: they are old"}
}

// Example_deep asks in a function deep inside a handler.
func Example_deep() {
	fmt.Println(errors.Is(sure(context.Background(), "delete", "Delete everything?"), elicit.ErrPending))
	_, _ = connectAccount, connectPage
	// Output: false
}
