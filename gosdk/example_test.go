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
	"github.com/tripseal/tripseal/wire"
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
		User: func(_ context.Context, extra *mcp.RequestExtra) (string, error) {
			if extra.TokenInfo == nil || extra.TokenInfo.UserID == "" {
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

// A gateway verifies access tokens that are opaque to this server, so a digest of the token names the user. But if the
// SDK's bearer middleware has verified the token of a request, the user gets the default name.
func ExampleHeaderUsers() {
	key, err := tripseal.ParseKey(os.Getenv("RELEASE_USERS_KEY")) // the same on all replicas; it does not rotate
	if err != nil {
		log.Fatal(err)
	}
	opaque := gosdk.HeaderUsers(wire.SecretUsers(key, "bearer", wire.BearerToken))

	source, err := keys.OpenFile("/etc/release/keys", nil) // these keys rotate
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, &gosdk.Options{User: gosdk.FirstOf(gosdk.TokenUsers, opaque)})
	_ = &http.Server{Handler: protected.Handler(nil), ReadHeaderTimeout: 10 * time.Second}
}
