package gosdk_test

import (
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
)

func ExampleProtect() {
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	boundary, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	gosdk.Protect(server, boundary, nil) // the line
}
