package mcpgo_test

import (
	"testing"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/mcpgo"
)

// While a service moves from one SDK to another, servers of both SDKs have the same keys. So a
// server can open the cursor of the other SDK, but mcp-go cannot read the position in it.
func TestACursorOfAnotherSDKIsRefusedLikeAForgedOne(t *testing.T) {
	l := new(log)
	b := boundary(t, l, nil)
	srv := server.NewMCPServer("test", "1", server.WithPaginationLimit(1))
	addHandlers(srv)
	mcpgo.Protect(srv, b, &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	alice := as(t.Context(), "alice")
	page, err := adapter.ListCursors(b).Open(alice, tripseal.Request{Method: "tools/list", Principal: tripseal.User("alice")}, "")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := page.Next(alice, cursor.NextPage{Position: []byte("Nf-BAwEBCXBhZ2VUb2tlbg")})
	if err != nil {
		t.Fatal(err)
	}
	forged := send(alice, t, srv, "tools/list", `"cursor":"mc1.forged"`)
	if got := send(alice, t, srv, "tools/list", `"cursor":`+quote(foreign)); got.raw != forged.raw {
		t.Errorf("%s, but a forged cursor gets %s", got.raw, forged.raw)
	}
}
