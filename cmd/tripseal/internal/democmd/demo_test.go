package democmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

func TestDemo(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"demo"}, []string{
			"the handler wrote  step=1&traffic=10", "the client saw     ms1.", "alice gets         deployed frontend 1.4.2 in eu",
			"ok one character changed  deployed without a confirmation   rejected: forged\n",
			"ok the end cut off        100% of traffic instead of 10%    rejected: malformed\n",
			"ok sent by another user   bob used alice's confirmation     rejected: user\n",
			"ok sent to another tool   restored instead of deployed      rejected: request\n",
			"ok with other arguments   database 9.9.9, never confirmed   rejected: arguments\n",
			"ok answers, but no state  deployed, and nobody was asked    2 answers dropped\n",
			"ok sent after it expired  deployed on an old confirmation   rejected: expired\n",
			"ok from another service   deployed; confirmed for billing   rejected: audience\n",
			"all 8 attacks failed.", "Invalid or expired requestState",
		}},
		{[]string{"demo", "--unprotected"}, []string{
			"the client saw     step=1&traffic=10", "harm without protection\n",
			"!! one character changed  deployed without a confirmation\n", "!! from another service   deployed; confirmed for billing\n",
			"All 8 attacks succeeded.",
		}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel() // the two wait until a token expires
			var out, errs bytes.Buffer
			if code := cli.Run(New(), c.args[1:], strings.NewReader(""), &out, &errs); code != 0 || errs.Len() > 0 {
				t.Fatalf("exit %d: %s\n%s", code, &errs, &out)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Error("colour, although this is not a terminal")
			}
		})
	}
}

// answer returns a handler that gives every request the same answer.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID json.RawMessage }
		json.NewDecoder(r.Body).Decode(&call)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, call.ID, body)
	}
}

// TestAnAttackWithoutItsAnswerIsNotCounted breaks a server after the honest calls. An attack then
// gets neither a rejection nor a success from the server.
func TestAnAttackWithoutItsAnswerIsNotCounted(t *testing.T) {
	for name, broken := range map[string]http.HandlerFunc{
		"a connection that breaks": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a connection that breaks in the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: message\ndata: {")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"an outage":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusInternalServerError) },
		"a lost login":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who?", http.StatusUnauthorized) },
		"an empty answer":  func(w http.ResponseWriter, _ *http.Request) {},
		"another error":    answer(400, `"error":{"code":-32603,"message":"Internal error"}`),
		"invalid params":   answer(400, `"error":{"code":-32602,"message":"Invalid params"}`),
		"half a rejection": answer(400, `"error":{"code":-32602,"message":"Invalid or expired requestState"}`),
		"a tool error":     answer(200, `"result":{"resultType":"complete","isError":true,"content":[{"type":"text","text":"deployed frontend 1.4.2 in eu, 10% of traffic"}]}`),
		"nothing done":     answer(200, `"result":{"resultType":"complete","content":[{"type":"text","text":"nothing was done"}]}`),
		"a question":       answer(200, `"result":{"resultType":"input_required","inputRequests":{"other":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}},"requestState":"x"}`),
	} {
		const honest = 3 + 2 + 2 // calls before the first attack
		var calls atomic.Int64
		var out bytes.Buffer
		d := demo{out: cli.Painter{Writer: &out}, wrap: func(protected bool, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if protected && r.Header.Get("Mcp-Method") == "tools/call" && calls.Add(1) > honest {
					broken(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		}}
		err := d.run(t.Context())
		var exit *cli.ExitError
		if !errors.As(err, &exit) || exit.Code != cli.ExitFailed ||
			!strings.HasPrefix(err.Error(), "8 of 8 attacks could not be tried; one character changed: ") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Count(out.String(), "\n?? ") != 8 || strings.Contains(out.String(), "all 8") {
			t.Errorf("%s: attacks that could not be tried in\n%s", name, &out)
		}
	}
}

func TestADemoThatCannotRunFails(t *testing.T) {
	for _, calls := range []int64{0, 3, 6, 13} { // of 7 honest calls on the protected side, and 7 on the other
		var n atomic.Int64
		d := demo{out: cli.Painter{Writer: io.Discard}, wrap: func(_ bool, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == "tools/call" && n.Add(1) > calls {
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			})
		}}
		var exit *cli.ExitError
		if err := d.run(t.Context()); !errors.As(err, &exit) || exit.Code != cli.ExitFailed {
			t.Errorf("broken after %d calls: %v", calls, err)
		}
	}
}

// TestHarmToTheProtectedServerIsShown makes the protected server act on every attack. The demo must
// show the harm.
func TestHarmToTheProtectedServerIsShown(t *testing.T) {
	const honest = 3 + 2 + 2
	var calls atomic.Int64
	var out bytes.Buffer
	d := demo{out: cli.Painter{Writer: &out}, wrap: func(protected bool, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if protected && r.Header.Get("Mcp-Method") == "tools/call" && calls.Add(1) > honest {
				answer(200, `"result":{"resultType":"complete","content":[{"type":"text","text":"restored database 9.9.9 in eu, 100% of traffic"}]}`)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}
	err := d.run(t.Context())
	var exit *cli.ExitError
	if !errors.As(err, &exit) || exit.Code != cli.ExitNo || err.Error() != "8 of 8 attacks succeeded although the server is protected" {
		t.Error(err)
	}
	if strings.Count(out.String(), "\n!! ") != 8 || strings.Count(out.String(), "  harm was done\n") != 8 {
		t.Errorf("%s", &out)
	}
}
