package elicit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
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
	Why string `json:"why" jsonschema:"for the log"`
}

// byHand is a handler that uses only the SDK.
func byHand(ctx context.Context, req *mcp.CallToolRequest, in DeleteArgs) (*mcp.CallToolResult, Deleted, error) {
	form := func(message, field, kind string) *mcp.ElicitParams {
		return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
		}}
	}
	ok, why := false, ""
	switch req.Params.RequestState {
	case "":
		return &mcp.CallToolResult{RequestState: "confirm", InputRequests: mcp.InputRequestMap{
			"confirm": form("Delete everything in "+in.Dir+"?", "ok", "boolean"),
		}}, Deleted{}, nil
	case "confirm":
		answer, isForm := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
		if !isForm || answer.Action != "accept" {
			return nil, Deleted{}, errors.New("not confirmed")
		}
		if ok, _ = answer.Content["ok"].(bool); !ok {
			return nil, Deleted{}, errors.New("not confirmed")
		}
		return &mcp.CallToolResult{RequestState: "reason", InputRequests: mcp.InputRequestMap{
			"reason": form("Why?", "why", "string"),
		}}, Deleted{}, nil
	case "reason":
		answer, isForm := req.Params.InputResponses["reason"].(*mcp.ElicitResult)
		if !isForm || answer.Action != "accept" {
			return nil, Deleted{}, errors.New("no reason given")
		}
		why, _ = answer.Content["why"].(string)
	default:
		return nil, Deleted{}, errors.New("the state is not one of this handler's")
	}
	return nil, Deleted{"deleted " + in.Dir + ": " + why}, nil
}

// withElicit is the same handler with this package.
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

func Example() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, nil)
	elicit.AddTool(protected, &mcp.Tool{Name: "delete"}, withElicit)
	mcp.AddTool(server, &mcp.Tool{Name: "delete_by_hand"}, byHand)
	if err := elicit.CheckForm[Confirm](); err != nil {
		log.Fatal(err)
	}
	// Output:
}

type account struct{ Token string }

// connectIDs stores the principal that each connect id is for. It stands for a table of yours.
var connectIDs sync.Map

func accountOf(context.Context, *elicit.Asker) (*account, bool) { return nil, false }
func principalOf(*elicit.Asker) string                          { return "alice" }
func signedInUser(*http.Request) string                         { return "alice" }

// connectAccount asks the user to connect an account in the browser.
func connectAccount(ctx context.Context, ask *elicit.Asker, in DeleteArgs) (Deleted, error) {
	id, err := elicit.Once(ask, "connect", func() (string, error) {
		id := newID()
		connectIDs.Store(id, principalOf(ask)) // who it is for
		return id, nil
	})
	if err != nil {
		return Deleted{}, err
	}
	consent := elicit.URL(ask, "connect", "Connect your account", "https://files.example.com/connect/"+id)
	if _, err := consent.Value(); err != nil {
		return Deleted{}, err
	}
	account, done := accountOf(ctx, ask)
	if !done {
		return Deleted{}, consent.NotYet() // the same question again
	}
	return Deleted{"deleted with " + account.Token}, nil
}

// connectPage is what the URL leads to.
func connectPage(w http.ResponseWriter, r *http.Request) {
	who, known := connectIDs.Load(r.PathValue("id"))
	if !known || who == "" || who != signedInUser(r) {
		http.Error(w, "this link is somebody else's", http.StatusForbidden)
		return
	}
	fmt.Fprintln(w, "connected")
}

func newID() string { return "id" }

func ExampleURL() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	elicit.AddTool(gosdk.Protect(server, boundary, nil), &mcp.Tool{Name: "delete"}, connectAccount)
	http.NewServeMux().HandleFunc("/connect/{id}", connectPage)
	// Output:
}

// confirmed is one helper for all handlers of a server. It returns the result that a
// handler must return at once, or nil.
func confirmed(ctx context.Context, req *mcp.CallToolRequest, message string) (*mcp.CallToolResult, error) {
	pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
		answer, err := elicit.Form[Confirm](ask, "confirm", message).Value()
		if err == nil && !answer.OK {
			err = errors.New("the user unticked the box")
		}
		return err
	})
	if pending != nil {
		return pending.ToolResult(), nil
	}
	if refused := new(elicit.RefusedError); errors.As(err, &refused) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "**Declined.** Nothing was deleted."}}}, nil
	}
	return nil, err
}

// A handler that is registered with the SDK itself asks through a helper.
func ExampleWithin() {
	boundary, _ := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"})
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	gosdk.Protect(server, boundary, nil)
	server.AddTool(&mcp.Tool{Name: "delete", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if result, err := confirmed(ctx, req, "Delete everything?"); result != nil || err != nil {
			return result, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "# Deleted"}}}, nil
	})
}
