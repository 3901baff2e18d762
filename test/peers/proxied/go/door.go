package main

import (
	"log"
	"net/http"
	"os"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// newEngine returns what the doors share. One tool accepts answers before it has asked.
func newEngine() *wire.Engine {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "e2e"})
	fatal(err)
	engine, err := wire.New(wire.Config{Boundary: boundary, Unsolicited: []string{prefix + "elicitation"}})
	fatal(err)
	return engine
}

// owner is who started the process.
var owner = tripseal.User("owner")

// doorOptions believe the header X-User, or ?user= in the URL of a client that sends no header of its own.
var doorOptions = wire.Options{
	AllowAnonymous: true,
	User: func(r *http.Request) (string, error) {
		if user := r.Header.Get("X-User"); user != "" {
			return user, nil
		}
		return r.URL.Query().Get("user"), nil
	},
}

// recorded writes the method and the status of each request that names its user in the URL to the file whose path is in
// REQUESTS, as the client sees them.
func recorded(next http.Handler) http.Handler {
	path := os.Getenv("REQUESTS")
	if path == "" {
		return next
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	fatal(err)
	requests := log.New(file, "", 0)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{w, 200}
		next.ServeHTTP(a, r)
		if r.URL.Query().Has("user") {
			requests.Print(r.Method, " ", a.status)
		}
	})
}

// answer remembers the status of an answer.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) Flush() { a.ResponseWriter.(http.Flusher).Flush() }
