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

// What the official SDK and gosdk do for a server with users, and mcp-go leaves to you.

type userKey struct{}

// caller tells mcpseal who is calling.
func caller(ctx context.Context) (string, error) {
	user, ok := ctx.Value(userKey{}).(string)
	if !ok {
		return "", errors.New("the request did not come through requireUser")
	}
	return user, nil
}

// requireUser refuses requests without a bearer token, and puts the user into the context.
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

// sessions binds the sessions of older clients to the users who opened them: the id of a
// session holds a MAC over its user. For mcp-go, whoever knows the id is the user, and may
// answer the questions of a call, listen to it and end it.
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

// require refuses requests for the session of another user.
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

// ResolveSessionIdManager has mcp-go make such ids. The request is nil when mcp-go forgets
// an idle session.
func (s sessions) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	of := userSessions{sessions: s}
	if r != nil {
		of.user, _ = caller(r.Context())
	}
	return of
}

// userSessions are the sessions of one user.
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
