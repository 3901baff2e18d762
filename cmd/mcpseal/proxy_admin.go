package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// readyTimeout is how long all checks of readiness together may take.
const readyTimeout = 5 * time.Second

// readiness tells whether the proxy can serve requests now.
type readiness struct {
	parts    []part
	draining atomic.Bool

	mu     sync.Mutex // held for a look
	looked time.Time
	result []error
}

// readyFor is how long a result counts, so that asking often costs the server nothing.
const readyFor = time.Second

// part is something that the proxy needs.
type part struct {
	name  string
	check func(context.Context) error
}

// need adds something that the proxy needs. A nil check means that it cannot fail.
func (r *readiness) need(name string, check func(context.Context) error) {
	if check != nil {
		r.parts = append(r.parts, part{name, check})
	}
}

// ServeHTTP answers 200 if the proxy can serve requests, otherwise 503. The body has a line
// for each part.
func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), readyTimeout) // others get the result too
	defer cancel()
	status := http.StatusOK
	var body strings.Builder
	for i, err := range r.look(ctx) {
		if err != nil {
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&body, "%s: %v\n", r.parts[i].name, err)
		} else {
			fmt.Fprintf(&body, "%s: ok\n", r.parts[i].name)
		}
	}
	if r.draining.Load() {
		status = http.StatusServiceUnavailable
		body.WriteString("the proxy is about to end\n")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write([]byte(body.String()))
}

// closing lets clients connect anew after each answer while the proxy is about to end, so
// that they reach another replica.
func (r *readiness) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}

// look checks all parts at once, unless somebody did so a moment ago.
func (r *readiness) look(ctx context.Context) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := time.Since(r.looked); r.result != nil && since >= 0 && since < readyFor {
		return r.result
	}
	errs := make([]error, len(r.parts))
	var group sync.WaitGroup
	for i, part := range r.parts {
		group.Go(func() { errs[i] = part.check(ctx) })
	}
	group.Wait()
	r.looked, r.result = time.Now(), errs
	return errs
}

// adminHandler serves what operators need. It must not be reachable for clients.
func adminHandler(ready *readiness, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /readyz", ready)
	mux.Handle("GET /metrics", metrics)
	return mux
}
