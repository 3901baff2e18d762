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
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
)

// verify is a placeholder: replace it with your own token verifier, which must set UserID.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}

// The rest of this file is for mcp-go. The official SDK and gosdk do this by themselves.

// caller returns the name of the user who makes the request.
func caller(ctx context.Context) (string, error) {
	info := auth.TokenInfoFromContext(ctx)
	if info == nil {
		return "", errors.New("the request did not come through auth.RequireBearerToken")
	}
	return info.UserID, nil
}

// sessions binds each session to the user who opened it: the id of a session contains a MAC over
// the user's name. Without this, mcp-go accepts anybody who knows the id of a session: they could
// answer the questions of its calls, listen to the session and end it.
type sessions struct{ key []byte }

func (s sessions) id(nonce, user string) string {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "%q %q", nonce, user)
	return fmt.Sprintf("%s.%x", nonce, mac.Sum(nil))
}

func (s sessions) isOf(user, id string) bool {
	nonce, _, _ := strings.Cut(id, ".")
	return user != "" && hmac.Equal([]byte(id), []byte(s.id(nonce, user)))
}

// require refuses a request that uses the session of another user.
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

// ResolveSessionIdManager makes mcp-go use session ids that are bound to the user of the request
// r. mcp-go calls it with a nil r when it removes an idle session.
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
