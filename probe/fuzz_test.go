package probe

import (
	"bytes"
	"testing"
)

// FuzzServer gives the input to the probe, as the answer of a hostile server.
func FuzzServer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"eyJzdGVwIjoxfQ","inputRequests":{"a":{"method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{"b":{"type":["null","string"],"minLength":9}}}}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if event, err := answerEvent(bytes.NewReader(text)); err == nil && !isAnswer(event) {
			t.Errorf("%q is no answer", event)
		}
		r := &reply{status: 200}
		r.read(text)
		_, _, _ = r.String(), r.form(), r.outcome()
		if state, ok := r.state(); ok {
			f := &flow{target: Target{Method: "tools/call", Name: "deploy"}, state: state, before: []exchange{{reply: r}}}
			f.shows(func(s string) string { return s })
			if all := edits(state); len(all) > 24 {
				t.Errorf("%d edits", len(all))
			}
			for _, v := range respelled(f) {
				v.make(f)
			}
			for i := range min(len(state), 32) {
				if changedAt(state, i) == state {
					t.Errorf("%q is not changed at %d", state, i)
				}
			}
		}
		for _, key := range r.keys() {
			if content, err := answer(r.message.Result.InputRequests[key], "", false); err == nil {
				if _, ok := members(content); !ok {
					t.Errorf("the answer %q is not an object", content)
				}
			}
		}
	})
}
