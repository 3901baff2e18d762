package httpcarrier

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

// page is a web page in a browser, which follows the rules of CORS: before a request that is not simple it sends a
// preflight, and the page gets only answers, and headers of answers, that it may read.
type page struct {
	*front
	origin string
}

// fetch sends a request as the page would. The result read is false if the browser does not let the page send the
// request or read the answer.
func (p page) fetch(method, body string, headers ...string) (a answered, read bool) {
	p.t.Helper()
	names := []string{"content-type"}
	for i := 0; i < len(headers); i += 2 {
		names = append(names, strings.ToLower(headers[i]))
	}
	ask := p.do("OPTIONS", "", "Origin", p.origin, "Access-Control-Request-Method", method,
		"Access-Control-Request-Headers", strings.Join(names, ","))
	allowed := func(header, value string) bool {
		list := strings.FieldsFunc(strings.ToLower(ask.header.Get(header)), func(r rune) bool { return r == ',' || r == ' ' })
		return slices.Contains(list, strings.ToLower(value))
	}
	mayRead := func(a answered) bool {
		origin := a.header["Access-Control-Allow-Origin"]
		return len(origin) == 1 && (origin[0] == "*" || origin[0] == p.origin)
	}
	if ask.status < 200 || ask.status > 299 || !mayRead(ask) || !allowed("Access-Control-Allow-Methods", method) {
		return ask, false
	}
	for _, name := range names {
		if !allowed("Access-Control-Allow-Headers", name) {
			return ask, false
		}
	}
	a = p.do(method, body, append(headers, "Origin", p.origin)...)
	exposed := strings.ToLower(a.header.Get("Access-Control-Expose-Headers"))
	for name := range a.header {
		switch strings.ToLower(name) {
		case "cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma":
		default:
			ofBrowser := strings.HasPrefix(name, "Access-Control-") || name == "Vary"
			if !ofBrowser && !strings.Contains(exposed, strings.ToLower(name)) {
				a.header.Del(name)
			}
		}
	}
	return a, mayRead(a)
}

const app = "https://app.example.com"

func TestAPageOfAnAllowedOriginWorksInABrowser(t *testing.T) {
	server := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", "plain")
		w.Header().Set("Access-Control-Allow-Origin", "https://other.example.com") // the proxy decides, not the server
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Vary", "Accept")
		writes(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`)(w, r)
	}
	f := newFront(t, server, named(t, "127.0.0.1/32"), func(c *Config) {
		c.AllowOrigins = []string{app, "https://two.example.com"}
	})
	for _, origin := range []string{app, "https://two.example.com"} {
		p := page{f, origin}
		a, ok := p.fetch("POST", callMessage, "Mcp-Protocol-Version", "2025-11-25", "Mcp-Param-Region", "eu",
			"X-User", "alice")
		if !ok || a.status != 200 || a.header.Get("Mcp-Session-Id") == "" ||
			a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%+v", a)
		}
		if vary := a.header["Vary"]; !slices.Contains(vary, "Origin") || !slices.Contains(vary, "Accept") {
			t.Errorf("a cache could give the answer to another page: %v", vary)
		}
		for name, c := range map[string]struct {
			method, body string
			headers      []string
			status       int
		}{
			"no user":       {"POST", callMessage, nil, 401},
			"not a message": {"POST", "{", []string{"X-User", "alice"}, 400},
			"no session":    {"DELETE", "", []string{"X-User", "alice", "Mcp-Session-Id", "x"}, 404},
		} {
			if a, ok := p.fetch(c.method, c.body, c.headers...); !ok || a.status != c.status {
				t.Errorf("%s: the page cannot read why: %+v", name, a)
			}
		}
	}
	for _, origin := range []string{"https://evil.example", "null", "http://app.example.com"} {
		if a, ok := (page{f, origin}).fetch("POST", callMessage, "X-User", "alice"); ok || a.status != 403 {
			t.Errorf("%s: %+v", origin, a)
		}
	}
	if a := f.do("OPTIONS", "", "Origin", app); a.status != 405 {
		t.Errorf("what is not a preflight: %+v", a)
	}
	own := newFront(t, unused(t))
	if a, ok := (page{own, app}).fetch("POST", callMessage); ok || a.status != 403 {
		t.Errorf("without a list of origins: %+v", a)
	}
}

func TestAPageReadsTheChallengeOfTheIssuer(t *testing.T) {
	f := newFront(t, unused(t), func(c *Config) {
		c.AllowOrigins = []string{app}
		c.Identity = challenging{}
	})
	a, ok := page{f, app}.fetch("POST", callMessage)
	if !ok || a.status != 401 || a.header.Get("Www-Authenticate") != "Bearer" {
		t.Errorf("%+v", a)
	}
}

// challenging knows nobody, and says how to authenticate.
type challenging struct{}

func (challenging) Caller(*http.Request) (tripseal.Principal, error) { return nil, io.EOF }
func (challenging) Headers() []string                                { return nil }
func (challenging) Challenge(*http.Request) string                   { return "Bearer" }

func TestEveryPageReadsTheMetadata(t *testing.T) {
	f := newFront(t, unused(t), named(t, "192.0.2.0/24"), func(c *Config) { c.Metadata = []byte(`{}`) })
	f.url = strings.TrimSuffix(f.url, "/mcp") + metadataPath
	a, ok := page{f, "https://anywhere.example"}.fetch("GET", "", "Mcp-Protocol-Version", "2025-11-25")
	if !ok || a.status != 200 || a.body != "{}" {
		t.Errorf("%+v", a)
	}
}

func TestTheMetadataOfTheServerIsNotASecondWayToTheServer(t *testing.T) {
	for name, server := range map[string]http.HandlerFunc{
		"too long":  writes(200, "application/json", `"`+strings.Repeat("x", maxMetadata)+`"`),
		"a page":    writes(200, "text/html", canary),
		"elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/"+canary, http.StatusFound) },
		"encoded": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			writes(200, "application/json", canary)(w, r)
		},
	} {
		f := newFront(t, server)
		f.url = strings.TrimSuffix(f.url, "/mcp") + metadataPath
		if a := f.do("GET", ""); strings.Contains(a.allText(), canary) || len(a.body) > 100 {
			t.Errorf("%s: %.200v", name, a)
		}
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	f := frontOf(t, dead.URL+"/mcp")
	f.url = strings.TrimSuffix(f.url, "/mcp") + metadataPath
	if a := f.do("GET", ""); a.status != 502 {
		t.Errorf("%+v", a)
	}
}
