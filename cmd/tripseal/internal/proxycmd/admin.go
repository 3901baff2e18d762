package proxycmd

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// readyTimeout is how long one check of all parts may take.
const readyTimeout = 5 * time.Second

// readiness tells whether the proxy can serve requests now.
type readiness struct {
	parts    []part
	draining atomic.Bool
}

// part is something that the proxy needs, such as its keys or the server.
type part struct {
	name  string
	check func(context.Context) error
}

// addPart adds a part to those that are checked. The function check returns an error that says
// why the part does not work now. addPart does nothing if check is nil, because the part then
// always works.
func (r *readiness) addPart(name string, check func(context.Context) error) {
	if check != nil {
		r.parts = append(r.parts, part{name, check})
	}
}

// ServeHTTP answers with the status 200 if the proxy can serve requests, and otherwise with
// 503. The body has a line for each part.
func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), readyTimeout)
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

// closeConnections wraps a handler. While the proxy is about to end, the returned handler also
// closes the connection after each answer. The client then connects again, and reaches another
// replica.
func (r *readiness) closeConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, req)
	})
}

// look returns an error or nil for each part. It checks all parts at the same time.
func (r *readiness) look(ctx context.Context) []error {
	errs := make([]error, len(r.parts))
	var group sync.WaitGroup
	for i, part := range r.parts {
		group.Go(func() { errs[i] = part.check(ctx) })
	}
	group.Wait()
	return errs
}

// adminHandler serves health, readiness and metrics to operators. Clients must not be able to
// reach it.
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
