package leaky

import (
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// attack is an attack on a server. It returns true if it got through.
type attack func(t *testing.T, s *Server) bool

// with(says, change) returns an attack. The attack begins an honest call of deploy, calls change to
// edit the retry, and sends the retry. The attack got through if the server answers the retry with
// the given text.
func with(says string, change func(m *message)) attack {
	return func(t *testing.T, s *Server) bool {
		m := message{answers: yes}
		m.state = message{}.begin(t, s)
		change(&m)
		return m.send(t, s).says() == says
	}
}

func of(says string, change func(state string) string) attack {
	return with(says, func(m *message) { m.state = change(m.state) })
}

// text returns an attack that changes the text of a state.
func text(change func(text string) string) attack {
	return of("deployed staging", func(state string) string { return quote(change(unquote(state))) })
}

// from(first, then, says) returns an attack. The attack sends one message, and then another one
// with the state that the server returned. The attack got through if the server answers the second
// message with the given text.
func from(first, then message, says string) attack {
	return func(t *testing.T, s *Server) bool {
		then := then
		then.state = first.begin(t, s)
		return then.send(t, s).says() == says
	}
}

const (
	big1 = `{"env":"staging","build":9007199254740993}`
	big2 = `{"env":"staging","build":9007199254740992}`
)

// cursorOf returns an attack that gets a cursor with one message, changes the cursor, and sends
// it with another message. The attack got through if the server returns a page.
func cursorOf(first, then message, change func(string) string) attack {
	return func(t *testing.T, s *Server) bool {
		then := then
		o := first.send(t, s)
		cursor := or(o.Result.NextCursor, o.Result.StructuredContent.NextCursor)
		if cursor == "" {
			t.Fatalf("no cursor: %s", o.text)
		}
		if change != nil {
			cursor = change(cursor)
		}
		if then.method == "tools/call" {
			then.args = `{"cursor":` + quote(cursor) + `,` + then.args[1:]
		} else {
			then.more = `"cursor":` + quote(cursor) + `,`
		}
		o = then.send(t, s)
		return len(o.Result.Tools)+len(o.Result.Prompts)+len(o.Result.Resources)+len(o.Result.StructuredContent.Orders) > 0
	}
}

var (
	tools   = message{method: "tools/list", args: "-"}
	prompts = message{method: "prompts/list", args: "-"}
	paged   = message{method: "tools/call", name: "orders", args: `{"status":"open"}`}
	book    = message{name: "book", args: `{"seat":"12A"}`}
)

func madeUp(cursor string) attack {
	return cursorOf(tools, tools, func(string) string { return cursor })
}

// edit replaces a text inside a token that is encoded in base64.
func edit(token, from, to string) string {
	decoded, _ := base64.RawURLEncoding.DecodeString(token)
	return b64([]byte(strings.ReplaceAll(string(decoded), from, to)))
}

var attacks = map[string][]attack{
	"unsigned-prefix": {
		text(func(s string) string { return "S1." + s[3:] }),
		text(func(s string) string { return "???" + s[3:] }),
	},
	"short-mac": {
		text(func(s string) string { return s[:strings.LastIndex(s, ".")+10] }),
		text(func(s string) string { return s[:strings.LastIndex(s, ".")+1] }),
	},
	"suffix-ignored": {
		text(func(s string) string { return s + "." }),
		text(func(s string) string { return s + "-x" }),
	},
	"lenient-base64": {
		text(func(s string) string { return s + "==" }),
		text(func(s string) string { return s[:9] + "\r\n" + s[9:] }),
		text(func(s string) string { return "s1." + strings.NewReplacer("-", "+", "_", "/").Replace(s[3:]) }),
		text(func(s string) string {
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
			last := max(0, strings.IndexByte(alphabet, s[len(s)-1]))
			return s[:len(s)-1] + string(alphabet[last^1])
		}),
	},
	"coerced-types": {
		of("deployed staging", func(state string) string { return "[" + state + "]" }),
		of("deployed staging", func(state string) string { return `{"state":` + state + `}` }),
	},
	"debug-state": {
		of("deployed staging", func(string) string { return `"debug"` }),
		of("deployed staging", func(string) string { return `"{}"` }),
	},
	"empty-unchecked": {of("deployed staging", func(string) string { return `""` })},
	"signed-plaintext": {func(t *testing.T, s *Server) bool {
		payload, _, _ := strings.Cut(unquote(message{}.begin(t, s)), ".")
		decoded, _ := base64.RawURLEncoding.DecodeString(payload)
		return strings.Contains(string(decoded), "tools/call deploy")
	}},
	"alg-none": {
		text(func(s string) string {
			parts := append(strings.Split(s, "."), "", "")
			return b64([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
		}),
		text(func(s string) string {
			parts := append(strings.Split(s, "."), "", "")
			return b64([]byte(`{"typ":"JWT","alg":"nOnE"}`)) + "." + parts[1] + "."
		}),
	},
	"stripping": {with("deployed staging", func(m *message) { m.state = "" })},
	"later-answers": {
		from(book, message{name: "book", args: book.args, answers: pay}, "booked 12A"),
		from(book, message{name: "book", args: book.args, answers: seat[:len(seat)-1] + "," + pay[1:]}, "booked 12A"),
	},
	"any-key": {with("deployed staging", func(m *message) { m.answers = strings.ReplaceAll(yes, "confirm", "x") })},
	"any-kind": {
		with("deployed staging", func(m *message) { m.answers = `{"confirm":{"roots":[]}}` }),
		with("deployed staging", func(m *message) { m.answers = strings.ReplaceAll(replied, `"reply"`, `"confirm"`) }),
	},
	"null-answers": {
		with("deployed staging", func(m *message) { m.answers = `{"confirm":null}` }),
		with("deployed staging", func(m *message) { m.answers = strings.ReplaceAll(yes, "true", "null") }),
	},
	"shared-tools": {
		with("rolled back staging", func(m *message) { m.name = "rollback" }),
	},
	"subset-arguments": {from(message{args: `{"env":"prod","build":7}`},
		message{args: `{"env":"prod"}`, answers: yes}, "deployed prod")},
	"unbound-arguments": {with("deployed prod", func(m *message) { m.args = `{"env":"prod"}` })},
	"raw-digest": {func(t *testing.T, s *Server) bool { // the fault is that an honest retry is rejected
		m := message{args: `{"build":1,"env":"a"}`}
		m.state, m.answers = m.begin(t, s), yes
		m.args = ` { "\u0065nv" : "\u0061" , "build":1 } `
		return m.send(t, s).says() != "deployed a build 1"
	}},
	"floats": {from(message{args: big1}, message{args: big2, answers: yes}, "deployed staging build 9007199254740992")},
	"folded-arguments": {
		with("deployed \u017ftaging", func(m *message) { m.args = "{\"env\":\"\u017ftaging\"}" }),
		with("deployed \uff53taging", func(m *message) { m.args = "{\"env\":\"\uff53taging\"}" }),
		from(message{args: `{"env":"k"}`}, message{args: "{\"env\":\"\u212a\"}", answers: yes}, "deployed \u212a"),
	},
	"replaced-utf8": {
		func(t *testing.T, s *Server) bool {
			first, then := message{args: `{"env":"\ud800"}`}, message{args: `{"env":"\udc01"}`, answers: yes}
			o := first.send(t, s)
			then.state = quote(o.Result.RequestState)
			return o.Error.Code == 0 && strings.HasPrefix(then.send(t, s).says(), "deployed ")
		},
		func(t *testing.T, s *Server) bool {
			first, then := message{args: "{\"env\":\"\xff\"}"}, message{args: "{\"env\":\"\xfe\"}", answers: yes}
			o := first.send(t, s)
			then.state = quote(o.Result.RequestState)
			return o.Error.Code == 0 && strings.HasPrefix(then.send(t, s).says(), "deployed ")
		},
	},
	"first-member": {
		with("deployed prod", func(m *message) { m.args = `{"env":"staging","env":"prod"}` }),
		with("deployed prod", func(m *message) { m.args = `{"env":"staging"},"arguments":{"env":"prod"}` }),
		with("deployed staging", func(m *message) { m.state += `,"requestState":"x"` }),
		with("rolled back staging", func(m *message) { m.name, m.saysName = `deploy","name":"rollback`, "deploy" }),
	},
	"case-blind": {
		with("deployed staging", func(m *message) { m.state, m.more = "", `"reque`+"\u017f"+`tState":"x",` }),
		with("deployed staging", func(m *message) { m.answers, m.more = "", `"InputResponses":`+yes+`,` }),
		with("deployed prod", func(m *message) { m.args = `{"env":"staging","Env":"prod"}` }),
	},
	"version-downgrade": {
		with("deployed staging", func(m *message) { m.state, m.version = `"x"`, "2025-06-18" }),
		with("deployed staging", func(m *message) { m.state, m.version = `"x"`, "-" }),
	},
	"headers-unchecked": {
		with("deployed staging", func(m *message) { m.saysName = "rollback" }),
		with("deployed staging", func(m *message) { m.saysMethod = "prompts/get" }),
	},
	"any-method": {
		with("deployed staging", func(m *message) { m.method, m.more = "tools/list", `"name":"deploy",` }),
		with("deployed staging", func(m *message) { m.method, m.more, m.state = "x/y", `"name":"deploy",`, `"x"` }),
	},
	"shared-users": {with("deployed staging", func(m *message) { m.bearer = "bob-token" })},
	"no-expiry": {func(t *testing.T, s *Server) bool {
		now := time.Now()
		s.Now = func() time.Time { return now }
		state := message{}.begin(t, s)
		now = now.Add(10 * time.Minute)
		return message{state: state, answers: yes}.send(t, s).says() != ""
	}},
	"reusable": {func(t *testing.T, s *Server) bool {
		m := message{state: message{}.begin(t, s), answers: yes}
		return m.send(t, s).says() == "deployed staging" && m.send(t, s).says() != ""
	}},
	"racy-use": {func(t *testing.T, s *Server) bool {
		m := message{state: message{}.begin(t, s), answers: yes}
		var paused, passed atomic.Int32
		both := make(chan struct{})
		s.Pause = func() { // no use is recorded before two handlers have run
			if paused.Add(1) == 2 {
				close(both)
			}
			<-both
		}
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				if m.send(t, s).says() != "" {
					passed.Add(1)
				}
			})
		}
		running.Wait()
		return passed.Load() == 2 && m.send(t, s).says() == ""
	}},
	"use-by-answer": {func(t *testing.T, s *Server) bool {
		m := message{state: message{}.begin(t, s), answers: yes}
		other := m
		other.answers = strings.Replace(yes, "accept", "decline", 1)
		return m.send(t, s).says() != "" && other.send(t, s).says() != "" && m.send(t, s).says() == ""
	}},
	"no-limits": {
		func(t *testing.T, s *Server) bool {
			message{args: `{"env":"` + strings.Repeat("x", maxBody) + `"}`}.send(t, s)
			return message{}.send(t, s).status != 200
		},
		func(t *testing.T, s *Server) bool {
			message{args: `{"env":"a","x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`}.send(t, s)
			return message{}.send(t, s).status != 200
		},
	},
	"cursor-prefix":  {cursorOf(tools, tools, func(c string) string { return "xx." + c[min(3, len(c)):] })},
	"cursor-numbers": {madeUp("3")},
	"cursor-shared-lists": {
		cursorOf(tools, prompts, nil),
		cursorOf(tools, paged, nil),
		cursorOf(paged, tools, nil),
		cursorOf(paged, message{method: "tools/call", name: "orders", args: `{"status":"closed"}`}, nil),
	},
	"cursor-shared-users": {
		cursorOf(tools, message{method: "tools/list", args: "-", bearer: "bob-token"}, nil),
		cursorOf(paged, message{method: "tools/call", name: "orders", args: paged.args, bearer: "bob-token"}, nil),
	},
	"one-token": {
		func(t *testing.T, s *Server) bool {
			cursor := tools.send(t, s).Result.NextCursor
			return message{state: quote(cursor), answers: yes}.send(t, s).says() != ""
		},
		func(t *testing.T, s *Server) bool {
			state := unquote(message{}.begin(t, s))
			return cursorOf(tools, tools, func(string) string { return state })(t, s)
		},
	},
	"oracle": {func(t *testing.T, s *Server) bool {
		m := message{state: message{}.begin(t, s), args: `{"env":"prod"}`}
		one := m.send(t, s)
		m.state = `"x"`
		return one.Error.Code != 0 && one.text != m.send(t, s).text
	}},
	"echo": {func(t *testing.T, s *Server) bool {
		return strings.Contains(message{state: `"!secret!"`}.send(t, s).text, "!secret!")
	}},
	"untyped": {func(t *testing.T, s *Server) bool {
		m := message{state: message{}.begin(t, s), answers: yes}
		return !strings.Contains(m.send(t, s).text, `"resultType":"complete"`)
	}},
	"undeclared": {func(t *testing.T, s *Server) bool {
		return message{caps: `{"sampling":{}}`}.send(t, s).Result.RequestState != ""
	}},
	"plaintext": {of("deployed prod", func(state string) string {
		return strings.Replace(state, "env=staging", "env=prod", 1)
	})},
	"base64-json": {of("deployed prod", func(state string) string {
		return quote(edit(unquote(state), "staging", "prod"))
	})},
	"hmac-unbound": {func(t *testing.T, s *Server) bool {
		state := message{bearer: "alice-token"}.begin(t, s)
		if payload, _, _ := strings.Cut(unquote(state), "."); edit(payload, "confirm", "") == payload {
			return false // the state has another form: it is sealed, for example
		}
		m := message{name: "rollback", args: `{"env":"prod"}`, bearer: "bob-token", state: state, answers: yes}
		return m.send(t, s).says() == "rolled back prod" && m.send(t, s).says() != ""
	}},
	"unsigned-cursor": {madeUp(b64([]byte("6"))), madeUp("MA")},
}

func TestEveryHoleLetsItsAttackThrough(t *testing.T) {
	for _, hole := range Holes() {
		if len(attacks[hole]) == 0 {
			t.Errorf("no attack shows %s", hole)
		}
		for i, attack := range attacks[hole] {
			if !attack(t, newServer(t, hole)) {
				t.Errorf("attack %d on %s did not get through", i, hole)
			}
		}
	}
}

func TestTheSoundServerStopsEveryAttack(t *testing.T) {
	for name, list := range attacks {
		for i, attack := range list {
			if attack(t, newServer(t)) {
				t.Errorf("attack %d of %s got through", i, name)
			}
		}
	}
}
