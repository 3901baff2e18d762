// Booking is a small server to start from. Its tool asks the user several questions, one after the
// other. Some depend on earlier answers. Between two questions the server stores nothing.
//
//	go run ./examples/booking                        stdio, for one client
//	go run ./examples/booking -http 127.0.0.1:8080   HTTP
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

// Args are the arguments of the tool.
type Args struct {
	City string `json:"city" jsonschema:"where to stay"`
}

// Booking is the result of the tool.
type Booking struct {
	Number string `json:"number"`
	Text   string `json:"text"`
	Note   string `json:"note,omitempty"`
}

// The forms that the tool asks the user to fill in.
type (
	Stay struct {
		Nights int `json:"nights" jsonschema:"how many nights"`
		Guests int `json:"guests" jsonschema:"how many guests"`
	}
	Room struct {
		Kind string `json:"kind" jsonschema:"which room"`
	}
	Confirm struct {
		OK bool `json:"ok" jsonschema:"book it"`
	}
)

// prices has the price of one night for each kind of room. prices[true] has the rooms for
// one guest, prices[false] the rooms for several guests.
var prices = map[bool]map[string]int{
	true:  {"single": 80, "suite": 240},
	false: {"double": 120, "suite": 240},
}

// book is the handler of the tool. It runs from its beginning in every round. If the user
// has already answered a question, book gets the answer at once. At the first question
// without an answer, book returns an error. Package elicit then asks the user.
func book(_ context.Context, ask *elicit.Asker, in Args) (Booking, error) {
	stay, err := elicit.Form[Stay](ask, "stay", "How long will you stay in "+in.City+"?").Value()
	if err != nil {
		return Booking{}, err
	}
	// The form checks the type of an answer; the handler checks its value.
	if stay.Nights < 1 || stay.Nights > 30 || stay.Guests < 1 || stay.Guests > 4 {
		return Booking{}, fmt.Errorf("a stay has 1 to 30 nights and 1 to 4 guests")
	}
	// The rooms to choose from depend on the previous answer.
	rooms := prices[stay.Guests == 1]
	kinds := slices.Sorted(maps.Keys(rooms))
	room, err := elicit.Form[Room](ask, "room", "Which room?", elicit.Enum("kind", kinds...)).Value()
	if err != nil {
		return Booking{}, err
	}
	// If the user declines, there is no note. The user is asked only once: later rounds
	// remember the answer, even if the user declined.
	note := ""
	wanted, write, err := elicit.Form[Confirm](ask, "note", "Shall your assistant write a note to the hotel?").Outcome()
	if err != nil {
		return Booking{}, err
	}
	if wanted == elicit.Accept && write.OK {
		prompt := fmt.Sprintf("Write one friendly sentence to a hotel in %s that expects %d guests.", in.City, stay.Guests)
		sample, err := elicit.Sample(ask, "sample", &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: prompt}},
		}}).Value()
		if err != nil {
			return Booking{}, err
		}
		for _, content := range sample.Content {
			if text, ok := content.(*mcp.TextContent); ok {
				note += text.Text
			}
		}
	}
	// In the first round that gets here, elicit.Once generates the number. In later rounds it
	// returns the same number.
	number, err := elicit.Once(ask, "number", func() (string, error) { return rand.Text()[:8], nil })
	if err != nil {
		return Booking{}, err
	}
	offer := fmt.Sprintf("a %s in %s, %d nights for %d", room.Kind, in.City, stay.Nights, rooms[room.Kind]*stay.Nights)
	confirm, err := elicit.Form[Confirm](ask, "confirm", "Book "+offer+"?").Value()
	if err != nil {
		return Booking{}, err
	}
	if !confirm.OK {
		return Booking{}, fmt.Errorf("nothing was booked")
	}
	return Booking{number, "booked " + offer, note}, nil
}

// newServer returns the protected server.
func newServer(config tripseal.Config) (*mcp.Server, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "booking", Version: "1.0.0"}, nil)
	elicit.AddTool(gosdk.Protect(server, boundary, nil), &mcp.Tool{Name: "book", Description: "Book a room"}, book)
	return server, nil
}

func main() {
	address := flag.String("http", "", "`address` to listen on; empty means stdio")
	flag.Parse()
	server, err := newServer(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "booking.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	if *address == "" {
		log.Fatal(server.Run(context.Background(), &mcp.StdioTransport{}))
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s\n", listener.Addr())
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}
