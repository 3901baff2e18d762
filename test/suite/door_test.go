package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// officialDoor is the official SDK behind a door, without gosdk.
var officialDoor = system{
	start: func(t *testing.T, s Server) Client {
		survivePanics(&s)
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: s.PageSize})
		addOfficial(server, s)
		return throughDoor(t, s, func(engine *wire.Engine, options wire.Options) http.Handler {
			get := func(*http.Request) *mcp.Server { return server }
			sdk := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
			return engine.Handler(sdk, options)
		})
	},
	cannot: doorsCannot(allCarriers, map[string]string{
		"a panic of a handler tells the client nothing, and the server lives": "this SDK ends the process, " +
			"so the harness recovers the panic; gosdk.Protect keeps this promise",
	}),
}

// doorsCannot returns what no door can promise for these carriers, and what more there is.
func doorsCannot(carriers []carrier, more map[string]string) map[string]string {
	cannot := make(map[string]string)
	for _, c := range carriers {
		for promise, why := range map[string]string{
			"an empty state is none": "a door rejects an empty state, because it never sends one",
			"an answer that is not whole never reaches the handler": "a door checks the key and the kind of an answer, " +
				"and the SDK decodes it",
			"what comes with a no never reaches the handler": "a door passes an answer as it is, or not at all",
		} {
			cannot[c.name+": "+promise] = why
		}
		for promise, why := range more {
			cannot[c.name+": "+promise] = why
		}
	}
	return cannot
}

// throughDoor puts a server behind a door, and returns a client that calls it without a socket. A header of the request
// names the user.
func throughDoor(t *testing.T, s Server, handler func(*wire.Engine, wire.Options) http.Handler) Client {
	t.Helper()
	boundary, renamed := s.Boundary, func(text []byte, _, _ string) []byte { return text }
	if boundary.Codec(tripseal.PurposeCursor) == nil {
		boundary, renamed = withKeys(t, boundary), func(text []byte, from, to string) []byte {
			return bytes.ReplaceAll(text, []byte(`"`+from), []byte(`"`+to))
		}
	}
	engine, err := wire.New(wire.Config{Boundary: boundary, RejectedText: s.RejectedText, Logger: s.Logger})
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(handler(engine, wire.Options{
		User:           func(r *http.Request) (string, error) { return s.Principal(r.Context(), r.Header.Get(userHeader)) },
		AllowAnonymous: s.AllowAnonymous,
	}))
	return func(user string, request []byte) []byte {
		return renamed(client(user, renamed(request, nativePrefix, ownPrefix)), ownPrefix, nativePrefix)
	}
}

// A door needs keys for cursors and session ids. Some promises give the boundary a format of their own that looks like
// the native one; withKeys gives that format another prefix, and the boundary keys.
func withKeys(t *testing.T, boundary *tripseal.Boundary) *tripseal.Boundary {
	t.Helper()
	config := boundary.Config()
	config.Format = ownFormat{config.Format}
	config.AlsoOpen = append(config.AlsoOpen, tripseal.Accepted{Format: tripseal.NativeFormat(tripseal.Ephemeral())})
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

var nativePrefix = tripseal.PurposeState.Prefix()

const ownPrefix = "own1."

type ownFormat struct{ tripseal.Format }

func (ownFormat) Prefix() string { return ownPrefix }

func (f ownFormat) Seal(ctx context.Context, b *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	token, err := f.Format.Seal(ctx, b, claims)
	return ownPrefix + strings.TrimPrefix(token, nativePrefix), err
}

func (f ownFormat) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	return f.Format.Open(ctx, b, nativePrefix+strings.TrimPrefix(token, ownPrefix))
}

// clientOf returns a client that calls an HTTP handler without a socket.
func clientOf(handler http.Handler) Client {
	return func(user string, request []byte) []byte {
		var head struct {
			Method string
			Params struct{ Name, URI string }
		}
		if err := json.Unmarshal(request, &head); err != nil {
			return []byte(err.Error())
		}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(request))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", userHeader: user,
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": head.Method, "Mcp-Name": head.Params.Name + head.Params.URI,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.Bytes()
	}
}
