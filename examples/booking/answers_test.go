package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/test/mutate"
)

const (
	booked  = "booked a double in Rome, 3 nights for 360"
	written = "Looking forward!"
)

// visitor returns a function that answers questions as a user would. One question begins with the
// given word. This question gets the given answer. If the server asks it again, the function
// cancels it. All other questions get an honest answer.
func visitor(word, answer string) func(mutate.Question) any {
	honest := map[string]string{
		"How":      `{"action":"accept","content":{"nights":3,"guests":2}}`,
		"Which":    `{"action":"accept","content":{"kind":"double"}}`,
		"Shall":    `{"action":"accept","content":{"ok":true}}`,
		"sampling": `{"role":"assistant","model":"m","content":{"type":"text","text":"` + written + `"}}`,
		"Book":     `{"action":"accept","content":{"ok":true}}`,
	}
	asked := 0
	return func(q mutate.Question) any {
		first, _, _ := strings.Cut(strings.ReplaceAll(q.Message(), "/", " "), " ")
		if first != word {
			return json.RawMessage(honest[first])
		}
		if asked++; asked > 1 {
			return json.RawMessage(`{"action":"cancel"}`)
		}
		return json.RawMessage(answer)
	}
}

func each(t *testing.T, answer func() func(mutate.Question) any, check func(revision, said string)) {
	t.Helper()
	client := mutate.Client{URL: serve(t), HTTP: http.DefaultClient}
	for _, revision := range []string{mutate.Newer, mutate.Older} {
		outcome, err := client.Call(t.Context(), mutate.Call{
			Revision: revision, Method: "tools/call", Answer: answer(),
			Params: map[string]any{"name": "book", "arguments": map[string]any{"city": "Rome"}},
		})
		if err != nil {
			t.Fatalf("%s: %v", revision, err)
		}
		check(revision, outcome.String())
	}
}

func TestADeclinedOrCancelledQuestionBooksNothing(t *testing.T) {
	for word, key := range map[string]string{"How": "stay", "Which": "room", "Book": "confirm"} {
		for action, refused := range map[string]string{"decline": "declined", "cancel": "cancelled"} {
			for _, content := range []string{"", `,"content":{"ok":true}`} {
				answer := fmt.Sprintf(`{"action":%q%s}`, action, content)
				each(t, func() func(mutate.Question) any { return visitor(word, answer) }, func(revision, said string) {
					if want := fmt.Sprintf("error: the question %s was %s", key, refused); said != want {
						t.Errorf("%s, %s for %s: %s", revision, answer, word, said)
					}
				})
			}
		}
	}
}

func TestANoteThatIsNotWantedIsNotWritten(t *testing.T) {
	// The last answer has a null in place of a boolean. In the newer revision the server then asks
	// again, and the user cancels. In the older revision the call fails.
	for _, answer := range []string{`{"action":"decline"}`, `{"action":"cancel"}`, `{"action":"accept","content":{"ok":false}}`, `{"action":"accept","content":{"ok":null}}`} {
		each(t, func() func(mutate.Question) any { return visitor("Shall", answer) }, func(revision, said string) {
			refused := revision != mutate.Newer && strings.Contains(said, "does not fit what was asked")
			if !strings.Contains(said, booked) && !refused || strings.Contains(said, written) {
				t.Errorf("%s, %s: %s", revision, answer, said)
			}
		})
	}
}

func TestAnAnswerThatDoesNotFitBooksNothing(t *testing.T) {
	form := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	for word, answers := range map[string][]string{
		"How": {
			form(`null`), form(`{}`), form(`{"nights":3}`), form(`{"nights":null,"guests":2}`), form(`{"nights":"3","guests":2}`), form(`{"nights":0,"guests":2}`),
			form(`{"nights":3,"guests":-1}`), form(`{"nights":2.5,"guests":2}`), form(`{"nights":1e30,"guests":2}`), form(`{"nights":1000000000000000000,"guests":2}`),
			form(`{"nights":3,"guests":1000000000}`), form(`{"Nights":3,"Guests":2}`),
		},
		"Which":    {form(`null`), form(`{}`), form(`{"kind":null}`), form(`{"kind":""}`), form(`{"kind":"single"}`), form(`{"kind":["double"]}`), form(`{"Kind":"double"}`)},
		"Shall":    {form(`null`), form(`{}`), form(`{"ok":"true"}`), form(`{"ok":1}`)},
		"Book":     {form(`null`), form(`{}`), form(`{"ok":null}`), form(`{"ok":"true"}`), form(`{"ok":1}`), form(`{"ok":false}`), form(`{"OK":true}`)},
		"sampling": {`{"role":"assistant","model":"m"}`, `{"role":"assistant","model":"m","content":null}`, `{"role":"assistant","model":"m","content":[null]}`},
	} {
		for _, answer := range answers {
			each(t, func() func(mutate.Question) any { return visitor(word, answer) }, func(revision, said string) {
				if strings.Contains(said, "booked a") || said == "" {
					t.Errorf("%s, %s for %s: %s", revision, answer, word, said)
				}
			})
		}
	}
}
