package probe

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	escapes "html"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

const hiddenToken = `abc+def/ghi~secret's==`

// spellings are ways in which a server may repeat an access token.
var spellings = map[string]func(string) string{
	"as it is":           func(s string) string { return s },
	"JSON":               func(s string) string { text, _ := json.Marshal(s); return strings.Trim(string(text), `"`) },
	"JSON for HTML":      func(s string) string { return strings.NewReplacer("+", `\u002B`, "/", `\/`, "'", `\u0027`).Replace(s) },
	"query":              url.QueryEscape,
	"path":               url.PathEscape,
	"HTML":               escapes.EscapeString,
	"base64":             func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64, no padding": func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64url":          func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64url, no padding": func(s string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(s))
	},
	"base64 in a URL":        func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"base64 of the header":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte("Bearer " + s + "\r\n")) },
	"base64 of an object":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(`{"t":"` + s + `"}`)) },
	"base64 after two bytes": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(`t=` + s + `&`)) },
	"hex":                    func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hex, upper case":        func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
}

func TestAnAccessTokenIsHiddenHoweverItIsWritten(t *testing.T) {
	p := &probe{Options: Options{Bearer: hiddenToken, OtherBearer: "x"}}
	for name, spell := range spellings {
		text := "before " + spell(hiddenToken) + " after"
		got := p.redact(text)
		if !strings.Contains(got, "before ") || !strings.Contains(got, "$"+BearerVariable) {
			t.Errorf("%s: %q became %q", name, text, got)
		}
		for _, part := range []string{"secret", spell("ghi~secret")} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q is left of %q", name, got, text)
			}
		}
		if again := p.redact(got); again != got {
			t.Errorf("%s: the second time %q becomes %q", name, got, again)
		}
	}
}

func TestTheLongerOfTwoTokensIsHiddenWhole(t *testing.T) {
	for _, p := range []*probe{
		{Options: Options{Bearer: "alice", OtherBearer: "alice-admin-secret"}},
		{Options: Options{Bearer: "alice-admin-secret", OtherBearer: "alice"}},
		{Options: Options{Bearer: "alice-admin-secret", OtherBearer: "admin"}},
	} {
		if got := p.redact("for alice-admin-secret, alice"); strings.Contains(got, "secret") || strings.Contains(got, "admin") {
			t.Errorf("%q", got)
		}
	}
	p := &probe{Options: Options{Bearer: "PROBE", OtherBearer: "BEARER"}}
	if got := p.redact(p.redact("my PROBE")); got != "my $"+BearerVariable {
		t.Errorf("what stands for a token was redacted: %q", got)
	}
}

// tokenServer returns a server that puts a text wherever a server can put one.
func tokenServer(text, cursor string) http.Handler {
	tool := &keeper{rounds: 1}
	calls := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		within := quoted(text)
		w.Header().Set("Content-Type", "application/json")
		switch r.Header.Get("Mcp-Method") {
		case "server/discover":
			fmt.Fprintf(w, `{"result":{"serverInfo":{"name":%s,"version":%s}}}`, within, quoted(strings.Repeat("v", 30)+text))
			return
		case "tools/list":
			fmt.Fprintf(w, `{"result":{"nextCursor":%s,"tools":[{"name":%s},{"name":%s}]}}`, quoted(cursor), quoted(fixturePrefix+text), quoted(fixturePrefix+"pattern"))
			return
		case "tools/call":
		default:
			fmt.Fprintf(w, `{"error":{"code":-32601,"message":%s,"data":{%s:1}}}`, within, within)
			return
		}
		toolServer(func(c toolCall) string {
			if calls++; strings.HasSuffix(c.Name, "pattern") {
				return asksWith("s", map[string]string{text: formOf(`{"type":"object","properties":{"p":{"type":"string","pattern":` + quoted(strings.Repeat("a", 50)+text) + `}},"required":["p"]}`)})
			}
			if calls%40 == 0 {
				return `"error":{"code":-32000,"message":` + quoted(strings.Repeat("x", 110)+text) + `}`
			}
			got := tool.call(c)
			switch {
			case strings.Contains(got, "done"):
				return resultOf("done for " + text)
			case got == invalidState && calls%2 == 0: // some refusals repeat the text, so refusals differ
				return `"error":{"code":-32602,"message":` + quoted(text) + `}`
			}
			return got
		}).ServeHTTP(w, r)
	})
}

// texts calls f for every string in a value.
func texts(value reflect.Value, f func(string)) {
	switch value.Kind() {
	case reflect.String:
		f(value.String())
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				texts(value.Field(i), f)
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			texts(value.Index(i), f)
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			texts(key, f)
			texts(value.MapIndex(key), f)
		}
	case reflect.Pointer:
		texts(value.Elem(), f)
	}
}

func TestNoTextOfAReportHasAPartOfAnAccessToken(t *testing.T) {
	const token = "s3cr3t+alice/tok3n-that-is-long"
	for name, spell := range spellings {
		for _, cursor := range []string{"page 2", spell(token)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				report := runAgainst(t, tokenServer(spell(token), cursor), Options{
					Bearer: token, OtherBearer: "s3cr3t+alice", Timeout: 5 * time.Second,
					Only: []string{"made-up", "empty", "oracle", "echoed-state", "used-again", "other-arguments", "cursor-changed", "readable"},
				})
				if len(report.Targets) == 0 || len(report.Notes) == 0 || report.Exit != ExitFinding {
					t.Fatalf("the test shows nothing: %v %v", report.Targets, report.Notes)
				}
				encoded := spell(token)
				texts(reflect.ValueOf(report), func(text string) {
					for _, part := range []string{token[:6], "tok3n", encoded[:len(encoded)/2], encoded[len(encoded)/2:]} {
						if strings.Contains(text, part) {
							t.Errorf("%q is in %q", part, clip(text, 300))
							return
						}
					}
				})
			})
		}
	}
}

func TestATransportErrorShowsNoAccessToken(t *testing.T) {
	const token = "s3cr3t-alice-token"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connection.Read(make([]byte, 1<<16))
			fmt.Fprintf(connection, "%s\r\n\r\n", token)
			connection.Close()
		}
	}()
	server, err := HTTP("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	report, err := Run(t.Context(), server, Options{Bearer: token, Targets: deploy})
	if err != nil {
		t.Fatal(err)
	}
	texts(reflect.ValueOf(report), func(text string) {
		if strings.Contains(text, "s3cr3t") {
			t.Errorf("%q", text)
		}
	})
	if !strings.Contains(report.Problem, "$"+BearerVariable) {
		t.Errorf("the test shows nothing: %q", report.Problem)
	}
}

// FuzzRedact puts an access token into any text, at any place, and checks that redact hides it.
// A second access token is the beginning of the first.
func FuzzRedact(f *testing.F) {
	for _, spell := range spellings {
		f.Add("before "+spell(hiddenToken)+" after", 3)
	}
	f.Add(`\\\%`+hiddenToken+"$"+BearerVariable, 1)
	f.Fuzz(func(t *testing.T, text string, at int) {
		p := &probe{Options: Options{Bearer: hiddenToken, OtherBearer: hiddenToken[:9]}}
		at = min(max(at, 0), len(text))
		got := p.redact(text[:at] + hiddenToken + text[at:])
		if strings.Contains(got, hiddenToken[:9]) {
			t.Errorf("%q", got)
		}
		if again := p.redact(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
	})
}
