package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/server"
)

// This file verifies users and binds sessions to users. The official SDK and gosdk do this
// for you; with mcp-go you must do it yourself.

type userKey struct{}

// caller returns the name of the user who makes the request. It is used as
// mcpgo.Options.Principal.
func caller(ctx context.Context) (string, error) {
	user, ok := ctx.Value(userKey{}).(string)
	if !ok {
		return "", errors.New("the request did not come through requireUser")
	}
	return user, nil
}

// requireUser refuses requests without a valid bearer token. It puts the user of a valid
// token into the context of the request.
func requireUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		user, ok := userOf(token)
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "invalid token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// sessions binds each session to the user who opened it: the id of a session contains a MAC
// over the user's name. Only clients of older protocol revisions have sessions. Without this
// type, mcp-go accepts anybody who knows the id of a session: they could answer the questions
// of its calls, listen to the session and end it.
type sessions struct{ key []byte }

func newSessions() sessions { return sessions{[]byte(rand.Text())} }

func (s sessions) id(nonce, user string) string {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%q %q", nonce, user)
	return fmt.Sprintf("%s.%x", nonce, mac.Sum(nil))
}

func (s sessions) isOf(user, id string) bool {
	nonce, _, _ := strings.Cut(id, ".")
	return user != "" && hmac.Equal([]byte(id), []byte(s.id(nonce, user)))
}

// require refuses a request if it uses the session of another user.
func (s sessions) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := caller(r.Context())
		if id := r.Header.Get(server.HeaderKeySessionID); id != "" && !s.isOf(user, id) {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ResolveSessionIdManager makes mcp-go use session ids that are bound to the user of the
// request r. When mcp-go removes an idle session, it calls this method with a nil r.
func (s sessions) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	of := userSessions{sessions: s}
	if r != nil {
		of.user, _ = caller(r.Context())
	}
	return of
}

// userSessions makes and checks the ids of one user's sessions.
type userSessions struct {
	sessions
	user string
}

func (s userSessions) Generate() string { return s.id(rand.Text(), s.user) }

func (s userSessions) Validate(id string) (terminated bool, err error) {
	if !s.isOf(s.user, id) {
		return false, errors.New("session not found")
	}
	return false, nil
}

func (s userSessions) Terminate(string) (notAllowed bool, err error) { return false, nil }
