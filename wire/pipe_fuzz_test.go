package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// FuzzLines writes any lines from both sides of a pipe. The server writes one line for each that it gets, and the
// others at its end. In these lines, @ stands for the id of the client's last request, # for the canary, and % for the mark of
// the last call. The canary must not reach the client as a state or as the cursor of a list, whatever the client takes
// for a line and for a member, and no mark may reach it at all.
func FuzzLines(f *testing.F) {
	quiet := slog.New(slog.DiscardHandler)
	boundary := newRig(f, tripseal.Config{Logger: quiet}, wire.Config{Logger: quiet}).engine.Boundary()
	f.Fuzz(func(t *testing.T, fromClient, fromServer []byte) {
		for _, proxied := range []bool{true, false} {
			engine, err := wire.New(wire.Config{Boundary: boundary, Proxied: proxied, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			var server, client sink
			pipe := engine.Pipe(&server, &client, tripseal.User("alice"))
			answers := bytes.SplitAfter(bytes.ReplaceAll(fromServer, []byte("#"), []byte(canary)), []byte("\n"))
			id, mark, marks := "null", "", []string(nil)
			listed := map[string]bool{} // whether every request with this id asked for a list
			answer := func() {
				if len(answers) > 0 {
					line := string(answers[0])
					answers = answers[1:]
					io.WriteString(pipe.Server, strings.NewReplacer("@", id, "%", mark).Replace(line))
				}
			}
			server.line = func(line string) {
				if !json.Valid([]byte(line)) {
					t.Errorf("the server got %q", line)
				}
				if got := string(member(t, line, "id")); got != "" && member(t, line, "method") != nil {
					id = got
					always, used := listed[sameID(id)]
					listed[sameID(id)] = slices.Contains(lists, methodOf([]byte(line))) && (always || !used)
				}
				if got := markIn(t, line); got != "" && !proxied {
					mark = got
					marks = append(marks, got)
				}
				answer()
			}
			half := len(fromClient) / 2
			pipe.Client.Write(fromClient[:half])
			pipe.Client.Write(fromClient[half:])
			pipe.Client.Close()
			for len(answers) > 0 {
				answer()
			}
			pipe.Server.Close()
			if !isClosed(pipe.Idle()) || wire.Marks(engine) != 0 {
				t.Errorf("after the end, %d calls have marks, or one waits", wire.Marks(engine))
			}
			for _, mark := range marks {
				if strings.Contains(client.text(), mark) {
					t.Errorf("the client got a mark in %q", client.text())
				}
			}
			if !proxied {
				continue // in process, an encoder writes the answers, but here it is the fuzzer
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(client.text(), "\r", "\n"), "\n") {
				if leaks(line, listed) {
					t.Errorf("the client got %q", line)
				}
			}
		}
	})
}

// sameID returns the same text for the ids of requests that a server could confuse: a string of digits is a number.
func sameID(id string) string {
	var text string
	if json.Unmarshal([]byte(id), &text) != nil {
		return id
	}
	return strings.TrimSpace(text)
}

// leaks reports whether the state of a message contains the canary, or the cursor if the message answers a list.
func leaks(line string, listed map[string]bool) bool {
	var head struct{ ID json.RawMessage }
	json.Unmarshal([]byte(line), &head)
	var guarded []json.RawMessage
	for _, place := range []string{"result", "params"} {
		guarded = append(guarded, valuesAt([]byte(line), place, "requestState")...)
		if listed[sameID(string(head.ID))] {
			guarded = append(guarded, valuesAt([]byte(line), place, "nextCursor")...)
		}
	}
	return strings.Contains(fmt.Sprintf("%s", guarded), canary)
}
