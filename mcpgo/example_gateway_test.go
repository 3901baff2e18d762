package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

// gatewayHeader is the header in which the gateway names the user that it has verified. The
// gateway must remove this header from the requests of clients, and only the gateway may
// reach the server.
const gatewayHeader = "X-Verified-User"

type gatewayUser struct{}

// fromGateway puts the user of an HTTP request into the context of its calls.
func fromGateway(ctx context.Context, r *http.Request) context.Context {
	return context.WithValue(ctx, gatewayUser{}, r.Header.Get(gatewayHeader))
}

// userOfCall names the user of a call.
func userOfCall(ctx context.Context) (string, error) {
	user, _ := ctx.Value(gatewayUser{}).(string)
	if user == "" {
		return "", errors.New("the call has not come through the gateway")
	}
	return user, nil
}

// archive asks the user before it archives a project.
func archive(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return server.NewInputRequestBuilder("asked").Elicit("confirm", mcp.ElicitationParams{
			Message: "Archive it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}).ToolResult(), nil
	}
	answer := server.ElicitationResponse(req.Params.InputResponses, "confirm")
	if answer == nil || answer.Action != mcp.ElicitationResponseActionAccept {
		return mcp.NewToolResultText("nothing was archived"), nil
	}
	return mcp.NewToolResultText("archived"), nil
}

// A gateway in front of the server has verified the user, and names the user in a header.
func ExampleOptions_gateway() {
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "projects.example.com", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		stdlog.Fatal(err)
	}
	srv := server.NewMCPServer("projects", "1.0.0")
	mcpgo.Protect(srv, boundary, &mcpgo.Options{Principal: userOfCall})
	srv.AddTool(mcp.NewTool("archive"), archive)
	web := httptest.NewServer(server.NewStreamableHTTPServer(srv,
		server.WithStateLess(true), // without sessions, nobody can use another user's session; older clients get no questions
		server.WithHTTPContextFunc(fromGateway)))
	defer web.Close()

	// Bob has got hold of the token of Alice.
	asked := throughGateway(web.URL, "alice", "")
	token := regexp.MustCompile(`"requestState":"[^"]+"`).FindString(asked)
	answer := "," + token + `,"inputResponses":{"confirm":{"action":"accept"}}`
	for _, user := range []string{"bob", "alice"} {
		fmt.Println(user, "archives the project:", strings.Contains(throughGateway(web.URL, user, answer), `"archived"`))
	}
	// Output:
	// bob archives the project: false
	// alice archives the project: true
}

// throughGateway calls the tool with the headers that the gateway sends for the user. It
// appends the last parameter, which is JSON text, to the params of the call.
func throughGateway(url, user, more string) string {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"archive","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"client","version":"1.0.0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	request, err := http.NewRequest("POST", url, strings.NewReader(call+more+"}}"))
	if err != nil {
		stdlog.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "archive",
		gatewayHeader: user,
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		stdlog.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		stdlog.Fatal(err)
	}
	return string(body)
}
