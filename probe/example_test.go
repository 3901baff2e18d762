package probe_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/tripseal/tripseal/probe"
)

// A test can attack your own server.
func ExampleRun() {
	handler := http.NotFoundHandler() // stands for the http.Handler of your server
	web := httptest.NewServer(handler)
	defer web.Close()

	server, err := probe.HTTP(web.URL + "/mcp")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	report, err := probe.Run(context.Background(), server, probe.Options{
		Targets: []probe.Target{{Method: "tools/call", Name: "deploy", Arguments: `{"env":"staging","build":7}`}},
		Bearer:  "alice-token", OtherBearer: "bob-token", // access tokens of two users
		Only: []string{"changed-character", "other-user"}, // leave this out to try all attacks
	})
	if err != nil {
		log.Fatal(err)
	}
	if report.Exit != probe.ExitNothing { // in a test: t.Error(report.Verdict)
		fmt.Println(report.Verdict)
	}
	// Output:
	// It could not be told: the server does not answer as an MCP server does: HTTP 404.
}
