// Command proxydiff sends mutated messages through the engine of the proxy. The messages that the proxy
// passes on go to readers: programs in other languages. The command fails if a reader sees a
// state, a cursor or an answer that the proxy did not accept.
//
// A reader gets one message per line, in base64. It answers with a line of JSON: null if it cannot
// read the message, otherwise a readerView. A readerView also has members whose names are spelled
// differently, such as request_state.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

func main() {
	limit := flag.Duration("for", 30*time.Second, "how long to send messages")
	n, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	seed := flag.Uint64("seed", n.Uint64(), "what to begin with")
	flag.Parse()
	if err := run(*limit, *seed); err != nil {
		fmt.Fprintf(os.Stderr, "proxydiff: %v (-seed %d)\n", err, *seed)
		os.Exit(1)
	}
}

const (
	ask  = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","requestState":"SECRET","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form"}}}}}`
	call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy"}}`
	page = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`
	ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
)

// fromClient and fromServer are the messages that are mutated.
var (
	fromClient = []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy","requestState":"TOKEN","inputResponses":{"q":{"action":"accept"}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy","requestState":"TOKEN","inputResponses":{"x":{"action":"accept"},"q":{"action":"accept"}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy","requestState":"forged","inputResponses":{"x":{"action":"accept"}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy","arguments":{"requestState":"x"},"inputResponses":{"x":{"role":"user"}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"deploy","requestState":"forged"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"deploy","requestState":"TOKEN"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"CURSOR"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"forged"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":""}}`,
		`{"jsonrpc":"2.0","id":7,"method":"x/y","params":{"requestState":"forged","cursor":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{"requestState":"forged"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"requestState":"forged"}}`,
		call, page, ping,
	}
	fromServer = []string{
		ask,
		`{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}}}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[],"requestState":"SECRET"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[],"inputRequests":{}}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"tools":[],"nextCursor":"SECRET","ttlMs":1,"cacheScope":"public"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{"requestState":"SECRET"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{"requestState":"SECRET"}}`,
		`{"jsonrpc":"2.0","id":8,"result":{"requestState":"SECRET","nextCursor":"SECRET"}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`,
	}
	lists = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"}
	calls = []string{"tools/call", "prompts/get", "resources/read"}
)

// passedMessage is a message that the proxy passed on.
type passedMessage struct {
	text     string
	toServer bool
	method   string // the method of the client's message
	alone    bool   // true for a message of the server that belongs to no request
}

// readerView is what a reader sees in a message.
type readerView struct {
	Method []string
	Found  [][2]json.RawMessage // pairs of a place, such as "params.cursor", and the value there
}

func run(limit time.Duration, seed uint64) error {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "proxydiff", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	engine, err := wire.New(wire.Config{Boundary: boundary, Proxied: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ctx, alice, secret := context.Background(), tripseal.User("alice"), "s"+rand.Text()
	m := mutator{Rand: mathrand.New(mathrand.NewPCG(seed, 0)), words: map[string]string{"SECRET": secret}}
	for word, exchange := range map[string][2]string{"TOKEN": {call, ask}, "CURSOR": {page, fromServer[4]}} {
		var answer struct {
			Result struct{ RequestState, NextCursor string }
		}
		if err := json.Unmarshal([]byte(engine.Open(ctx, exchange[0], alice).Seal(ctx, m.filled(exchange[1]))), &answer); err != nil {
			return err
		}
		m.words[word] = answer.Result.RequestState + answer.Result.NextCursor
	}
	var readers []*reader
	for _, command := range [][]string{{"python3", "test/proxydiff/reader.py"}, {"node", "test/proxydiff/reader.mjs"}} {
		r, err := start(command...)
		if err != nil {
			return err
		}
		defer r.stop()
		readers = append(readers, r)
	}
	sent, through, found := 0, 0, 0
	for end := time.Now().Add(limit); time.Now().Before(end); {
		var batch []passedMessage
		for len(batch) < 100 {
			sent++
			if m.IntN(2) == 0 {
				e := engine.Open(ctx, m.mutated(fromClient), alice)
				if e.Forward != "" {
					batch = append(batch, passedMessage{text: e.Forward, toServer: true, method: e.Method})
				}
				continue
			}
			request := []string{call, page, ping}[m.IntN(3)]
			message, e := m.mutated(fromServer), engine.Open(ctx, request, alice)
			if out := e.Seal(ctx, message); out != "" {
				batch = append(batch, passedMessage{text: out, method: e.Method})
			}
			if out := engine.Pass(ctx, message); out != "" {
				batch = append(batch, passedMessage{text: out, alone: true})
			}
		}
		for _, r := range readers {
			views, err := r.read(batch)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			for i, view := range views {
				if view == nil {
					return fmt.Errorf("%s cannot read what passed: %q", r.name, batch[i].text)
				}
				if problem := batch[i].check(view, secret); problem != "" {
					return fmt.Errorf("%s sees %s in %q", r.name, problem, batch[i].text)
				}
				found += len(view.Found)
			}
		}
		through += len(batch)
	}
	fmt.Printf("%d messages, of which %d passed; the readers saw %d states, cursors, questions and answers, all as they should be\n", sent, through, found)
	if through == 0 || through == sent || found == 0 {
		return fmt.Errorf("the messages test nothing")
	}
	return nil
}

// check returns what the reader sees in the message and should not see. It returns "" if there
// is nothing.
func (p *passedMessage) check(view *readerView, secret string) string {
	at := map[string][]json.RawMessage{}
	for _, f := range view.Found {
		place := text(f[0])
		at[place] = append(at[place], f[1])
	}
	if p.toServer && p.method != "" && utf8.ValidString(p.method) && !slices.Equal(view.Method, []string{p.method}) {
		return fmt.Sprintf("the method %q, not %q", view.Method, p.method)
	}
	isCall, isList := slices.Contains(calls, p.method), slices.Contains(lists, p.method)
	params, result := at["params.requestState"], at["result.requestState"]
	switch {
	case !p.toServer && len(params) > 0:
		return "a state in the params"
	case p.toServer && len(result) > 0:
		return "a state in the result"
	case p.toServer && (len(params) > 1 || len(params) == 1 && (text(params[0]) != secret || p.method != "tools/call")):
		return "a state that was not opened"
	case !p.toServer && (len(result) > 1 || len(result) == 1 && (!strings.HasPrefix(text(result[0]), "ms1.") || !isCall || p.alone)):
		return "a state that was not sealed"
	case !p.toServer && len(at["result.inputRequests"]) > 0 && (p.alone || isCall && len(result) != 1):
		return "questions that are not pinned"
	}
	for _, value := range at["params.cursor"] {
		if p.toServer && isList && text(value) != secret {
			return "a cursor that was not opened"
		}
	}
	for _, value := range at["result.nextCursor"] {
		if !p.toServer && (p.alone || isList && string(value) != "null" && !strings.HasPrefix(text(value), "mc1.")) {
			return "a cursor that was not sealed"
		}
	}
	for _, value := range at["params.inputResponses"] {
		var answers struct{ Keys []string }
		json.Unmarshal(value, &answers) // answers.Keys stays empty if the value is not an object (for example, null)
		if p.toServer && isCall && len(answers.Keys) > 0 && (len(params) != 1 || !slices.Equal(answers.Keys, []string{"q"})) {
			return "an answer that was not asked for"
		}
	}
	return ""
}

func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return "not a text: " + string(value)
	}
	return s
}

// reader is a running program, in another language, that reads messages.
type reader struct {
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func start(command ...string) (*reader, error) {
	r := &reader{name: command[0], process: exec.Command(command[0], command[1:]...)}
	r.process.Stderr = os.Stderr
	out, err := r.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	if r.in, err = r.process.StdinPipe(); err != nil {
		return nil, err
	}
	return r, r.process.Start()
}

func (r *reader) stop() {
	r.in.Close()
	r.process.Process.Kill()
	r.process.Wait()
}

func (r *reader) read(batch []passedMessage) (views []*readerView, err error) {
	var lines bytes.Buffer
	for _, p := range batch {
		lines.WriteString(base64.StdEncoding.EncodeToString([]byte(p.text)) + "\n")
	}
	written := make(chan error, 1)
	go func() {
		_, err := r.in.Write(lines.Bytes())
		written <- err
	}()
	for range batch {
		line, err := r.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var view *readerView
		if err := json.Unmarshal(line, &view); err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, <-written
}
