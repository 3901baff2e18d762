package gosdk_test

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
)

func ExampleProtect() {
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	gosdk.Protect(server, boundary, nil) // the line
}

// This server gives each user the same name as a server with the Python SDK does.
func ExampleOptions_python() {
	options := &gosdk.Options{
		Principal: func(_ context.Context, req mcp.Request) (string, error) {
			extra := req.GetExtra() // from this request: the context may belong to the first request of the session
			if extra == nil || extra.TokenInfo == nil || extra.TokenInfo.UserID == "" {
				return "", nil // refused, unless AllowAnonymous is set
			}
			info := extra.TokenInfo
			client, _ := info.Extra["client_id"].(string) // PythonUser fails without a client id
			issuer, _ := info.Extra["iss"].(string)
			return compat.PythonUser(client, issuer, info.UserID)
		},
	}
	_ = options
}

// A gateway verifies access tokens that are opaque to this server, so BearerUsers names a user by a
// digest of the access token. But FirstOf asks VerifiedUsers first: if the SDK's bearer middleware
// has verified the access token of a request, the user gets the default name.
func ExampleBearerUsers() {
	key, err := tripseal.ParseKey(os.Getenv("RELEASE_USERS_KEY")) // the same on all replicas
	if err != nil {
		log.Fatal(err)
	}
	users := gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key))

	source, err := keys.OpenFile("/etc/release/keys", nil) // these keys rotate, the key above does not
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	gosdk.Protect(server, boundary, &gosdk.Options{Principal: users.Principal})
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{Principal: users.HTTPPrincipal})
	_ = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
}
