package probe

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// toolCall is a call of a tool, as a server sees it.
type toolCall struct {
	Name           string
	Arguments      json.RawMessage
	RequestState   *string
	InputResponses map[string]struct {
		Action  string
		Content map[string]any
	}
	user string
}

// toolServer returns a server that calls a function of the test for every call of a tool. The
// function returns one member of the answer: the result or the error.
func toolServer(tool func(c toolCall) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params toolCall
		}
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.Params.user = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		switch m.Method {
		case "server/discover":
			answer = `"result":{"serverInfo":{"name":"small","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[]}`
		case "tools/call":
			answer = tool(m.Params)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	})
}

// asksWith returns a result that asks questions. Each question is JSON text.
func asksWith(state string, questions map[string]string) string {
	var all []member
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		all = append(all, member{quoted(key), questions[key]})
	}
	return `"result":{"resultType":"input_required","requestState":` + quoted(state) + `,"inputRequests":` + object(all) + `}`
}

// formOf returns a question whose form has this schema.
func formOf(schema string) string {
	return `{"method":"elicitation/create","params":{"mode":"form","message":"Sure?","requestedSchema":` + schema + `}}`
}

const yesOrNo = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`

func resultOf(text string) string {
	return `"result":{"resultType":"complete","content":[{"type":"text","text":` + quoted(text) + `}]}`
}

const invalidState = `"error":{"code":-32602,"message":"invalid requestState"}`

// keeper is a tool with random states. It remembers for which call and round it issued each state.
type keeper struct {
	rounds int    // how often it asks
	asks   int    // how many questions it asks in a round; 0 means 1
	parts  int    // how many further parts its state has
	only   string // the only arguments that it takes; "" means any
	spends bool   // whether every call spends its state, even a call that is refused
	done   func() // called when the user has answered all questions with yes; may be nil

	mu   sync.Mutex
	kept map[string]string // what each state is for
}

func (k *keeper) call(c toolCall) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	round := 0
	if k.only != "" && string(c.Arguments) != k.only {
		return `"error":{"code":-32602,"message":"invalid arguments"}`
	}
	if c.RequestState != nil {
		ok := false
		for try := 1; try <= k.rounds; try++ {
			if k.kept[*c.RequestState] == k.purpose(c, try) {
				round, ok = try, true
			}
		}
		if k.spends {
			delete(k.kept, *c.RequestState)
		}
		if !ok {
			return invalidState
		}
		for i := range max(1, k.asks) {
			switch got := c.InputResponses[fmt.Sprintf("q%d-%d", round, i)]; {
			case got.Action == "decline" || got.Action == "cancel":
				return resultOf("declined")
			case got.Action != "accept" || got.Content["ok"] != true:
				return k.ask(c, round)
			}
		}
	}
	if round == max(1, k.rounds) {
		if k.done != nil {
			k.done()
		}
		return resultOf("done " + string(c.Arguments))
	}
	return k.ask(c, round+1)
}

// issued reports whether the state in c was issued for this call and this round.
func (k *keeper) issued(c toolCall, round int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[*c.RequestState] == k.purpose(c, round)
}

func (k *keeper) purpose(c toolCall, round int) string {
	return fmt.Sprint(round, c.user, c.Name, string(c.Arguments))
}

func (k *keeper) ask(c toolCall, round int) string {
	if k.kept == nil {
		k.kept = map[string]string{}
	}
	state := rand.Text()
	for range k.parts {
		state += "." + rand.Text()[:11]
	}
	k.kept[state] = k.purpose(c, round)
	questions := map[string]string{}
	for i := range max(1, k.asks) {
		questions[fmt.Sprintf("q%d-%d", round, i)] = formOf(yesOrNo)
	}
	return asksWith(state, questions)
}

// deploy is the target of most tests with a toolServer.
var deploy = []Target{{Method: "tools/call", Name: "deploy", Arguments: `{"env":"staging"}`}}
