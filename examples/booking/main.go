// Booking is a small server to start from, on either SDK. Its tool asks the user several questions. Some depend on
// earlier answers. Between two questions the server stores nothing.
//
//	go run ./examples/booking -http 127.0.0.1:8080                 the official SDK
//	go run ./examples/booking -http 127.0.0.1:8080 -sdk mcp-go     mcp-go
//	go run ./examples/booking -call http://127.0.0.1:8080/mcp      in another terminal: answer by keyboard
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	gomcp "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// handler returns the protected server, on the named SDK.
func (d *desk) handler(sdk string, boundary *tripseal.Boundary) (http.Handler, error) {
	// With sign-in, leave AllowAnonymous out and set User: then a state works for its user only.
	switch sdk {
	case "go-sdk":
		srv := mcp.NewServer(&mcp.Implementation{Name: "booking", Version: "1.0.0"}, nil)
		mcp.AddTool(srv, &mcp.Tool{Name: "book", Description: "Book a flight"}, gosdk.AskingTool(d.book))
		return gosdk.Protect(srv, boundary, &gosdk.Options{AllowAnonymous: true}).Handler(nil), nil
	case "mcp-go":
		engine, err := wire.New(wire.Config{Boundary: boundary})
		if err != nil {
			return nil, err
		}
		srv := server.NewMCPServer("booking", "1.0.0", server.WithElicitation())
		tool := gomcp.NewTool("book", gomcp.WithDescription("Book a flight"), gomcp.WithInputSchema[Args]())
		srv.AddTool(tool, mcpgo.AskingTool(d.book))
		return mcpgo.Handler(srv, engine, wire.Options{AllowAnonymous: true}), nil
	}
	return nil, fmt.Errorf("-sdk %q is unknown: write go-sdk or mcp-go", sdk)
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on; port 0 means any")
	sdk := flag.String("sdk", "go-sdk", "`name` of the SDK: go-sdk, which is the official one, or mcp-go")
	forms := flag.Bool("forms", false, "ask with forms only, without the link")
	url := flag.String("call", "", "`URL` of a server to call from this terminal")
	flag.Parse()
	if *url != "" {
		if err := call(context.Background(), *url, os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "booking.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	site, d := "http://"+listener.Addr().String(), &desk{}
	if !*forms {
		d.site = site
	}
	handler, err := d.handler(*sdk, boundary)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.HandleFunc("/pay/{number}", d.pay)
	fmt.Printf("serving %s/mcp\n", site)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

// pay is the page that the link leads to. A real one checks that the user who opens it is the one who asked for it.
func (d *desk) pay(w http.ResponseWriter, r *http.Request) {
	d.paid.Store(r.PathValue("number"), true)
	fmt.Fprintln(w, "Paid. Go back to your client, and accept the question again.")
}
