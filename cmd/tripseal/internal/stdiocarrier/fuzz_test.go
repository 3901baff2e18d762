package stdiocarrier

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

const canary = "canary-7b1f"

// FuzzLines sends arbitrary lines from both sides. In the lines of the server, @ stands for the id
// of the client's last request, and # stands for the canary. The canary must not reach the client
// as a state or as the cursor of a list, no matter how the client reads lines and JSON.
func FuzzLines(f *testing.F) {
	p := newProxy(f, tripseal.Config{})
	f.Fuzz(func(t *testing.T, fromClient, fromServer []byte) {
		input, stdin := io.Pipe()
		stdout, output := io.Pipe()
		var out bytes.Buffer
		s := &session{proxy: p, caller: tripseal.User("alice"), client: newLineWriter(&out), server: newLineWriter(stdin), log: io.Discard}

		// Requests have the same key if a server could confuse their ids. The value is true if each of
		// these requests asked for a list.
		lists := map[string]bool{}
		go func() {
			defer output.Close()
			answers := bytes.SplitAfter(bytes.ReplaceAll(fromServer, []byte("#"), []byte(canary)), []byte("\n"))
			id := "null"
			answer := func() {
				if len(answers) > 0 {
					output.Write(bytes.ReplaceAll(answers[0], []byte("@"), []byte(id)))
					answers = answers[1:]
				}
			}
			requests := bufio.NewReader(input)
			for {
				line, err := requests.ReadBytes('\n')
				if err != nil {
					break
				}
				if got, method, ok := head(line); ok && method && got != "" {
					id = got
					always, used := lists[likeness(id)]
					lists[likeness(id)] = isList(line) && (always || !used)
				}
				answer()
			}
			for range answers {
				answer()
			}
		}()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.fromServer(context.Background(), stdout)
			stdout.Close()
		}()
		s.fromClient(context.Background(), bytes.NewReader(fromClient))
		stdin.Close()
		<-ended
		if s.pending.waiting != 0 || s.pending.bytes != 0 {
			t.Errorf("%d requests and %d bytes wait after the end", s.pending.waiting, s.pending.bytes)
		}
		for _, line := range bytes.FieldsFunc(out.Bytes(), func(r rune) bool { return r == '\n' || r == '\r' }) {
			if leaksCanary(line, lists) {
				t.Errorf("the client got %q", line)
			}
		}
	})
}

func isList(line []byte) bool {
	var m struct{ Method string }
	json.Unmarshal(line, &m)
	return slices.Contains([]string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"}, m.Method)
}

// leaksCanary reports whether the state of a message contains the canary. If the message answers a
// request for a list, leaksCanary also checks the message's cursor. It ignores the case of member
// names.
func leaksCanary(line []byte, lists map[string]bool) bool {
	var head struct{ ID json.RawMessage }
	json.Unmarshal(line, &head)
	for _, place := range members(line) {
		if !strings.EqualFold(place.name, "result") && !strings.EqualFold(place.name, "params") {
			continue
		}
		for _, member := range members(place.value) {
			state := strings.EqualFold(member.name, "requestState")
			cursor := strings.EqualFold(member.name, "nextCursor") && lists[likeness(string(head.ID))]
			if (state || cursor) && bytes.Contains(member.value, []byte(canary)) {
				return true
			}
		}
	}
	return false
}

type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object, up to the first one that cannot be read.
func members(text []byte) (all []member) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		text, ok := name.(string)
		var value json.RawMessage
		if err != nil || !ok || decoder.Decode(&value) != nil {
			break
		}
		all = append(all, member{text, value})
	}
	return all
}
