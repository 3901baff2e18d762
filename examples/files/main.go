// Files is an MCP server in front of another service, which stores files. Like many such servers,
// it runs in replicas, makes a new mcp.Server for each request, and knows its users only by an
// opaque bearer token. It passes this token on to the service that stores the files. Its tools ask
// the user before they act, and use a sealer to keep their state. There are two ways (shapes) to
// protect the server:
//
//	go run ./examples/files -http 127.0.0.1:8080                   behind the middleware
//	go run ./examples/files -http 127.0.0.1:8080 -shape handler    the handler seals
//
// The bearer tokens are "token-of-alice" and "token-of-bob". This program keeps its keys and
// the used tokens in memory. Replicas must share three things: the keys (use keys.OpenFile),
// the used tokens (use redisreplay.New), and the key that is passed to gosdk.BearerUsers (read
// it with tripseal.ParseKey).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/replay"
)

// service holds what all servers in one replica share.
type service struct {
	drive   *drive
	sealer  sealer
	install func(*mcp.Server) *gosdk.Protected // adds the middleware to a server; nil if the handler seals the states itself
}

// newService returns the HTTP handler of one replica. Pass the same config and the same
// userKey in all replicas.
func newService(shape string, drive *drive, config tripseal.Config, userKey tripseal.Key) (http.Handler, error) {
	config.RequireUser = true
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	users := gosdk.BearerUsers(userKey)
	protection := gosdk.Prepare(boundary, &gosdk.Options{Principal: users.Principal})
	s := service{drive: drive}
	switch shape {
	case "middleware":
		s.sealer, s.install = plaintext{}, protection.Install
	case "handler":
		s.sealer = inHandler{protection}
	default:
		return nil, fmt.Errorf("the shape %q is neither middleware nor handler", shape)
	}
	return s.drive.usersOnly(gosdk.Handler(s.newServer, &gosdk.HandlerOptions{Principal: users.HTTPPrincipal})), nil
}

// newServer returns a server for one request or, if the client uses an older protocol
// revision, for its session. The tools use the bearer token of the request r.
func (s *service) newServer(r *http.Request) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	if s.install != nil {
		s.install(server)
	}
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	token := r.Header.Get("Authorization")
	server.AddTool(&mcp.Tool{Name: "delete_file", Description: "Delete a file", InputSchema: schema}, s.confirmed(token, "Delete", s.drive.remove))
	server.AddTool(&mcp.Tool{Name: "archive_file", Description: "Move a file to the archive", InputSchema: schema}, s.confirmed(token, "Archive", s.drive.archive))
	return server
}

// confirmed returns the handler of a tool that asks the user first and then calls the function
// act. The handler's state is the name of the user's folder, so that the handler looks up the
// folder only once.
func (s *service) confirmed(token, verb string, act func(folder, path string) bool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Path string }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil || !fs.ValidPath(in.Path) {
			return say("There is no such path.", true), nil
		}
		before, err := s.sealer.Open(ctx, req)
		if err != nil {
			return nil, err
		}
		folder := before.state
		if folder == "" {
			folder = s.drive.folderOf(token)
		}
		answer, ok := before.answers["confirm"].(*mcp.ElicitResult)
		switch {
		case !ok:
			return s.sealer.Seal(ctx, req, before, folder, confirmation(verb+" "+in.Path+"?"))
		case answer.Action != "accept" || answer.Content["ok"] != true:
			return say("Nothing was changed.", false), nil
		case !act(folder, in.Path):
			return say("There is no such file.", true), nil
		}
		return say(verb+" "+in.Path+": done.", false), nil
	}
}

func confirmation(message string) mcp.InputRequestMap {
	return mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}, "required": []string{"ok"},
	}}}
}

func say(text string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: isError}
}

func main() {
	address := flag.String("http", "127.0.0.1:0", "`address` to listen on; port 0 means any")
	shape := flag.String("shape", "middleware", "where states are sealed: middleware or handler")
	ttl := flag.Duration("ttl", 0, "lifetime of a state; 0 means 10 minutes")
	flag.Parse()
	once, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com", TTL: *ttl, Replay: once}
	handler, err := newService(*shape, newDrive(), config, tripseal.GenerateKey())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s\n", listener.Addr())
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}
