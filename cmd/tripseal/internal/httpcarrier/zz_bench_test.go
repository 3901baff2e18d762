package httpcarrier

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
	"github.com/tripseal/tripseal/wire"
)

func BenchmarkZZ(b *testing.B) {
	const done = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`
	const ask = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"step=1;service=web;version=2.4.1","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Really deploy?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}}}}}`
	large := strings.Replace(done, "done", strings.Repeat(`2026-07-28T10:00:00Z INFO deploy: pod \"web-5d9c\" in zone eu-1 is ready\n`, 64<<10/75), 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := done
		switch {
		case bytes.Contains(body, []byte(`"large"`)):
			answer = large
		case bytes.Contains(body, []byte(`"deploy"`)) && !bytes.Contains(body, []byte(`step=1`)):
			answer = ask
		}
		if r.Header.Get("Accept") == "text/event-stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: message\ndata: "+answer+"\n\n")
			http.NewResponseController(w).Flush()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		io.WriteString(w, answer)
	}))
	defer up.Close()
	address, _ := url.Parse(up.URL + "/mcp")
	quiet := slog.New(slog.DiscardHandler)
	boundary, _ := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "x", Logger: quiet})
	engine, _ := wire.New(wire.Config{Boundary: boundary, Proxied: true, Logger: quiet})
	handler, err := New(Config{Engine: engine, Upstream: address, Identity: identity.Anonymous(), Logger: quiet, Door: wire.Options{Ended: func(context.Context, wire.Ended) {}}})
	if err != nil {
		b.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = address.Scheme, address.Host, ""
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true},
	}
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		forward.ServeHTTP(w, r)
	})
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for _, job := range []string{"silent", "flow", "large"} {
			for name, h := range map[string]http.Handler{"plain": plain, "seal": handler} {
				b.Run(job+"/"+accept[12:]+"/"+name, func(b *testing.B) {
					s := httptest.NewServer(h)
					defer s.Close()
					tr := &http.Transport{DisableCompression: true}
					defer tr.CloseIdleConnections()
					c := &http.Client{Transport: tr}
					call := func(tool, extra string) string {
						body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"service":"web","env":"staging"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}` + extra + `}}`
						r, _ := http.NewRequest("POST", s.URL+"/mcp", strings.NewReader(body))
						r.Header.Set("Content-Type", "application/json")
						r.Header.Set("Accept", accept)
						r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
						r.Header.Set("Mcp-Method", "tools/call")
						r.Header.Set("Mcp-Name", tool)
						res, err := c.Do(r)
						if err != nil {
							b.Fatal(err)
						}
						defer res.Body.Close()
						t, _ := io.ReadAll(res.Body)
						if res.StatusCode != 200 {
							b.Fatal(res.Status, string(t))
						}
						return string(t)
					}
					b.ReportAllocs()
					for b.Loop() {
						switch job {
						case "flow":
							_, after, _ := strings.Cut(call("deploy", ""), `"requestState":"`)
							state, _, _ := strings.Cut(after, `"`)
							call("deploy", `,"inputResponses":{"q":{"action":"accept","content":{"ok":true}}},"requestState":"`+state+`"`)
						default:
							call(job, "")
						}
					}
				})
			}
		}
	}
}
