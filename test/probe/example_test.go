package probe_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/tripseal/tripseal/probe"
	"github.com/tripseal/tripseal/test/leaky"
)

// A test can attack your own server. The server in this example lets a user answer with the
// state of another user.
func ExampleRun() {
	handler, err := leaky.New("shared-users") // stands for the http.Handler of your server
	if err != nil {
		log.Fatal(err)
	}
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
	for _, result := range report.Results {
		fmt.Println(result.ID+":", result.Verdict)
	}
	if report.Exit != probe.ExitNothing { // in a test: t.Error(report.Verdict)
		fmt.Println(report.Verdict)
	}
	// Output:
	// other-user: finding
	// changed-character: refused
	// 1 class of attacks got through.
}
