package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
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
			var out, errs bytes.Buffer
			if code := run(c.args, strings.NewReader(""), &out, &errs); code != 0 || errs.Len() > 0 {
				t.Fatalf("exit %d: %s\n%s", code, &errs, &out)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 80 {
					t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line), line)
				}
			}
			if len(lines) > 24 {
				t.Errorf("%d lines do not fit one screen", len(lines))
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
		for _, c := range []struct{ breakProtected, unprotectedOnly bool }{{true, false}, {false, true}, {false, false}} { // if breakProtected is false, the unprotected server breaks
			if !c.breakProtected && !c.unprotectedOnly && name != "an outage" && name != "nothing done" {
				continue // skipped, because each of these cases waits until a token expires
			}
			const honest = 3 + 2 + 2 // calls before the first attack
			var calls atomic.Int64
			var out bytes.Buffer
			d := demo{unprotected: c.unprotectedOnly, out: painter{&out, false}, wrap: func(protected bool, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if protected == c.breakProtected && r.Header.Get("Mcp-Method") == "tools/call" && calls.Add(1) > honest {
						broken(w, r)
						return
					}
					next.ServeHTTP(w, r)
				})
			}}
			err := d.run(t.Context())
			var exit *exitError
			if !errors.As(err, &exit) || exit.code != exitFailed || !strings.HasPrefix(err.Error(), "8 of 8 attacks could not be tried; one character changed: ") {
				t.Errorf("%s, %+v: %v", name, c, err)
			}
			if got := strings.Count(out.String(), "could not be tried"); got != 8 || strings.Count(out.String(), "\n?? ") != 8 || strings.Contains(out.String(), "all 8") {
				t.Errorf("%s, %+v: %d attacks that could not be tried in\n%s", name, c, got, &out)
			}
		}
	}
}

func TestADemoThatCannotRunFails(t *testing.T) {
	for calls := range int64(2 * 7) { // 7 honest calls on the protected side, 7 on the unprotected side
		var n atomic.Int64
		d := demo{out: painter{io.Discard, false}, wrap: func(_ bool, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == "tools/call" && n.Add(1) > calls {
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			})
		}}
		var exit *exitError
		if err := d.run(t.Context()); !errors.As(err, &exit) || exit.code != exitFailed {
			t.Errorf("broken after %d calls: %v", calls, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "Usage:\n  tripseal [command]"},
		{[]string{"--help"}, 0, "demo"},
		{[]string{"dmeo"}, 2, `there is no command "dmeo"; was demo meant?`},
		{[]string{"demo", "--help"}, 0, "--unprotected"},
		{[]string{"demo", "--unpretected"}, 2, "unpretected"},
		{[]string{"demo", "now"}, 2, `"now" is one argument too many`},
	} {
		var out bytes.Buffer
		if code := run(c.args, strings.NewReader(""), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: exit %d, %s", c.args, code, &out)
		}
	}
}

// TestHelpFitsATerminal checks the help of every command, including the commands that cobra adds.
func TestHelpFitsATerminal(t *testing.T) {
	var paths [][]string
	var walk func(cmd *cobra.Command, path []string)
	walk = func(cmd *cobra.Command, path []string) {
		paths = append(paths, path)
		for _, sub := range cmd.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root, nil)
	if len(paths) < 18 {
		t.Fatalf("%d commands found: %q", len(paths), paths)
	}
	for _, path := range paths {
		for _, args := range [][]string{append(slices.Clone(path), "--help"), append([]string{"help"}, path...)} {
			var out bytes.Buffer
			if code := run(args, strings.NewReader(""), &out, &out); code != 0 || out.Len() == 0 {
				t.Fatalf("%q: exit %d, %s", args, code, &out)
			}
			for line := range strings.Lines(out.String()) {
				line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", strings.Repeat(" ", 8))
				if n := utf8.RuneCountInString(line); n > 80 && !slices.Contains(path, "completion") { // their text is cobra's
					t.Errorf("%q: a line of %d columns: %s", args, n, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%q: white space at the end of %q", args, line)
				}
			}
		}
	}
}

// TestEveryHarmIsAnother checks that the harm of each attack has a text of its own, and that no such
// text reads like the result of an honest call.
func TestEveryHarmIsAnother(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"demo", "--unprotected"}, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("exit %d: %s", code, &out)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(out.String()) {
		if harm, ok := strings.CutPrefix(line, "!! "); ok {
			harm = strings.TrimSpace(harm[23:])
			if harm == "" || seen[harm] || strings.Contains(harm, deployed) {
				t.Errorf("this shows no harm: %s", line)
			}
			seen[harm] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d attacks in\n%s", len(seen), &out)
	}
}

// TestAServerThatRejectsShowsNoHarm protects the server that should be unprotected. The demo must
// then show no harm.
func TestAServerThatRejectsShowsNoHarm(t *testing.T) {
	for _, alone := range []bool{true, false} {
		ring := tripseal.Ephemeral()
		n := 0
		var out bytes.Buffer
		d := demo{unprotected: alone, out: painter{&out, false}, wrap: func(protected bool, next http.Handler) http.Handler {
			if protected {
				return next
			}
			n++ // the servers always start in the same order, so n tells which one this is
			config := tripseal.Config{Keys: ring, Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler)}
			switch n {
			case 2:
				config.TTL = lifetime
			case 3:
				config.Audience = "billing.example.com"
			}
			boundary, err := tripseal.New(config)
			if err != nil {
				t.Fatal(err)
			}
			server := release.NewServer()
			gosdk.Protect(server, boundary, &gosdk.Options{Logger: slog.New(slog.DiscardHandler)})
			return auth.RequireBearerToken(verify, nil)(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
		}}
		err := d.run(t.Context())
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitNo || !strings.HasPrefix(err.Error(), "8 of 8 attacks did no harm") {
			t.Errorf("alone %v: %v", alone, err)
		}
		rejected, asked := strings.Count(out.String(), "none: rejected"), strings.Count(out.String(), "none: asked again")
		if rejected != 7 || asked != 1 || strings.Contains(out.String(), "!!") || strings.Contains(out.String(), "succeeded") {
			t.Errorf("alone %v: harm in\n%s", alone, &out)
		}
	}
}

// TestHarmToTheProtectedServerIsShown makes the protected server act on every attack. The demo must
// show the harm.
func TestHarmToTheProtectedServerIsShown(t *testing.T) {
	const honest = 3 + 2 + 2
	var calls atomic.Int64
	var out bytes.Buffer
	d := demo{out: painter{&out, false}, wrap: func(protected bool, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if protected && r.Header.Get("Mcp-Method") == "tools/call" && calls.Add(1) > honest {
				answer(200, `"result":{"resultType":"complete","content":[{"type":"text","text":"restored database 9.9.9 in eu, 100% of traffic"}]}`)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}
	err := d.run(t.Context())
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitNo || err.Error() != "8 of 8 attacks succeeded although the server is protected" {
		t.Error(err)
	}
	if strings.Count(out.String(), "\n!! ") != 8 || strings.Count(out.String(), "  harm was done\n") != 8 {
		t.Errorf("%s", &out)
	}
}

// TestHarmIsWhatTheToolDid checks that the demo takes the harm from the result of the tool, not from
// the name of the attack.
func TestHarmIsWhatTheToolDid(t *testing.T) {
	const honest = 3 + 2 + 2
	for _, c := range []struct{ result, want string }{
		{"deployed frontend 1.4.2 in eu, 55% of traffic", "!! the end cut off        55% of traffic instead of 10%\n"},
		{"deployed frontend 1.4.2 in eu, 10% of traffic", "?? the end cut off        could not be tried\n"},
		{"removed frontend 1.4.2 in eu, 10% of traffic", "!! sent to another tool   removed instead of deployed\n"},
		{"deployed frontend 1.4.2 in eu, 10% of traffic", "?? sent to another tool   could not be tried\n"},
		{"deployed mailer 3.0.0 in eu, 10% of traffic", "!! with other arguments   mailer 3.0.0, never confirmed\n"},
		{"deployed frontend 1.4.2 in eu, 10% of traffic", "?? with other arguments   could not be tried\n"},
		{"removed frontend 1.4.2 in eu, 10% of traffic", "!! one character changed  removed without a confirmation\n"},
		{"nothing was done", "?? sent by another user   could not be tried\n"},
	} {
		var calls atomic.Int64
		var out bytes.Buffer
		d := demo{unprotected: true, out: painter{&out, false}, wrap: func(_ bool, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == "tools/call" && calls.Add(1) > honest {
					answer(200, fmt.Sprintf(`"result":{"resultType":"complete","content":[{"type":"text","text":%q}]}`, c.result))(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		}}
		if d.run(t.Context()); !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: no %q in\n%s", c.result, c.want, &out)
		}
	}
}
