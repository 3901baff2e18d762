package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/probe"
)

// lifetime is how long a token lives. It is short, because the probe waits until a token
// expires.
const lifetime = 10 * time.Second

// side is what the probe found on one of the two servers.
type side struct {
	report *probe.Report

	mu       sync.Mutex
	attack   string            // the attack that is being tried
	rejected map[string][]byte // from the id of an attack to the first answer that rejects a token
}

// probeBoth probes both servers at the same time.
func probeBoth(ctx context.Context) (without, with *side, err error) {
	without, with = &side{rejected: map[string][]byte{}}, &side{rejected: map[string][]byte{}}
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = without.probe(ctx, release.NewServer()) })
	both.Go(func() {
		boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com", TTL: lifetime, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			errs[1] = err
			return
		}
		server := release.NewServer()
		gosdk.Protect(server, boundary, nil) // page.html.tmpl shows the same line
		errs[1] = with.probe(ctx, server)
	})
	both.Wait()
	return without, with, errors.Join(errs[:]...)
}

// probe starts the server on a loopback address, and attacks it.
func (s *side) probe(ctx context.Context, server *mcp.Server) error {
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.tap(auth.RequireBearerToken(verify, nil)(handler)))
	web := httptest.NewServer(mux)
	defer web.Close()
	target, err := probe.HTTP(web.URL + "/mcp")
	if err != nil {
		return err
	}
	defer target.Close()
	call := func(tool string) probe.Target {
		return probe.Target{
			Method: "tools/call", Name: tool, Arguments: `{"service":"frontend","version":"1.4.2"}`, Others: `{"service":"database","version":"9.9.9"}`,
			Answers: map[string]string{"confirm": `{"ok":true}`, "region": `{"name":"eu"}`},
		}
	}
	s.report, err = probe.Run(ctx, target, probe.Options{
		Targets: []probe.Target{call("deploy"), call("rollback")},
		Bearer:  "alice-token", OtherBearer: "bob-token",
		MaxAge: lifetime + time.Second, Timeout: 30 * time.Second,
		Progress: func(p probe.Progress) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.attack = p.Attack
		},
	})
	if err == nil && (s.report.Problem != "" || s.report.Exit == probe.ExitUnclear) {
		err = fmt.Errorf("the probe could not tell: %s %s", s.report.Verdict, s.report.Problem)
	}
	return err
}

func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// tap keeps, for each attack, the first answer that rejects a token. It is needed because
// a report shows only the answers to attacks that got through.
func (s *side) tap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard := &listener{ResponseWriter: w}
		next.ServeHTTP(heard, r)
		var answer struct{ Error struct{ Message string } }
		if json.Unmarshal(heard.body.Bytes(), &answer) != nil || answer.Error.Message != tripseal.Wire(tripseal.ErrRejected).Message {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.rejected[s.attack] == nil {
			s.rejected[s.attack] = heard.body.Bytes()
		}
	})
}

// listener keeps a copy of the body that is written to it.
type listener struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (l *listener) Write(p []byte) (int, error) {
	l.body.Write(p)
	return l.ResponseWriter.Write(p)
}

func (l *listener) Flush() { http.NewResponseController(l.ResponseWriter).Flush() }
