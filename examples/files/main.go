// Files is like an existing server that is moved to tripseal: it serves files that lie elsewhere,
// runs in replicas, makes a new mcp.Server for each request, and knows its users only by an opaque
// access token. Its tools confirm with the user, deep inside their helpers, through one function.
// Only that function and the file sealing.go know how a state is kept, and only they were changed.
//
//	go run ./examples/files -dir folder                  for alice and bob, who have folders in it
//	go run ./examples/files -dir folder -unprotected     as it was before
//
// The access tokens are "token-of-alice" and "token-of-bob". All replicas run in this process.
// Replicas in processes of their own must share three things: the keys (use keys.OpenFile), the
// used tokens (use redisreplay.New), and the key of the users (read it with tripseal.ParseKey).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/wire"
)

// service holds what the servers of one replica share.
type service struct {
	files     *os.Root         // has a folder for each user
	protector *gosdk.Protector // nil in the server as it was before
}

// newService returns the HTTP handler of one replica. Pass the same config and the same userKey in
// all replicas.
func newService(files *os.Root, config tripseal.Config, userKey tripseal.Key) (http.Handler, error) {
	config.RequireUser = true
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	users := gosdk.HeaderUsers(wire.SecretUsers(userKey, "bearer", wire.BearerToken))
	s := service{files, gosdk.NewProtector(boundary, &gosdk.Options{User: users})}
	return usersOnly(s.protector.Handler(s.newServer, nil)), nil
}

// newServer returns a server for one request or, if the client uses an older protocol revision,
// for its session.
func (s *service) newServer(r *http.Request) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
	add := func(name, description string, act func(c *call, path string) (string, error)) {
		tool := &mcp.Tool{Name: name, Description: description, InputSchema: schema}
		server.AddTool(tool, s.handler(r.Header.Get("Authorization"), act))
	}
	add("read_file", "Read a file", s.read)
	add("delete_file", "Delete a file, or a folder and what is in it", s.delete)
	add("archive_file", "Mark a file as archived", s.archive)
	return server
}

// folderOf simulates the service that stores the files: nobody else knows whose a token is.
func folderOf(authorization string) string {
	return map[string]string{"Bearer token-of-alice": "alice", "Bearer token-of-bob": "bob"}[authorization]
}

// usersOnly refuses requests with unknown access tokens, as a gateway would do. Without it, a
// client could invent any number of tokens and be a new user with each of them.
func usersOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if folderOf(r.Header.Get("Authorization")) == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on; port 0 means any")
	dir := flag.String("dir", "", "`folder` that has the folders alice and bob")
	replicas := flag.Int("replicas", 1, "how many replicas to serve; those after the first get a port of their own")
	unprotected := flag.Bool("unprotected", false, "serve as before the move, to see which attacks get through")
	flag.Parse()
	if err := serve(*address, *dir, *replicas, *unprotected); err != nil {
		log.Fatal(err)
	}
}

func serve(address, dir string, replicas int, unprotected bool) error {
	files, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	once, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		return err
	}
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com", Replay: once}
	userKey := tripseal.GenerateKey()
	failed := make(chan error)
	for range replicas {
		handler, err := newService(files, config, userKey)
		if err != nil {
			return err
		}
		if unprotected {
			before := service{files: files}
			handler = usersOnly(mcp.NewStreamableHTTPHandler(before.newServer, &mcp.StreamableHTTPOptions{Stateless: true}))
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		address = "127.0.0.1:0"
		fmt.Printf("serving http://%s\n", listener.Addr())
		web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- web.Serve(listener) }()
	}
	return <-failed
}
