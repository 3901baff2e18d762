package leaky

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// transports are the ways to send a message to a server.
var transports = map[string]func(t *testing.T, s *Server) func(m message) outcome{
	"http": func(t *testing.T, s *Server) func(m message) outcome { return overHTTP(t, s, "/mcp") },
	"sse":  func(t *testing.T, s *Server) func(m message) outcome { return overHTTP(t, s, "/?sse=1") },
	"stdio": func(t *testing.T, s *Server) func(m message) outcome {
		send, _ := overStdio(t, s)
		return func(m message) outcome { return send(m.body()) }
	},
}

func overHTTP(t *testing.T, s *Server, path string) func(m message) outcome {
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return func(m message) outcome {
		t.Helper()
		o, err := post(t, web.URL+path, m)
		if err != nil {
			t.Fatal(err)
		}
		if o.Error.Code == 0 && o.sse != strings.Contains(path, "sse") {
			t.Fatalf("SSE is %v at %s", o.sse, path)
		}
		return o
	}
}

func post(t *testing.T, url string, m message) (outcome, error) {
	r, err := http.NewRequest("POST", url, strings.NewReader(m.body()))
	if err != nil {
		return outcome{}, err
	}
	r.Header = m.header()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return outcome{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return outcome{}, err
	}
	return outcomeOf(t, response.StatusCode, response.Header, string(body)), nil
}

// overStdio serves s on pipes. The channel done gets the result of Serve.
func overStdio(t *testing.T, s *Server) (send func(line string) outcome, done chan error) {
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	done = make(chan error, 1)
	go func() {
		err := s.Serve(t.Context(), inRead, outWrite)
		inRead.Close()
		outWrite.Close()
		done <- err
	}()
	t.Cleanup(func() { in.Close() })
	answers := bufio.NewReader(out)
	return func(line string) outcome {
		go io.WriteString(in, line+"\n")
		answer, err := answers.ReadString('\n')
		if err != nil {
			return outcome{}
		}
		return parsed(t, answer)
	}, done
}

func TestHonestFlowsWorkWithEveryHole(t *testing.T) {
	flows := []struct {
		m       message
		answers []string
		says    string
	}{
		{message{}, []string{yes}, "deployed staging"},
		{message{args: big1}, []string{yes}, "deployed staging build 9007199254740993"},
		{message{args: `{"env":"a\u0026b=c ","build":1.50,"x":{"y":[null]}}`, bearer: "alice-token"}, []string{yes}, "deployed a&b=c  build 1.50"},
		{message{name: "rollback"}, []string{yes}, "rolled back staging"},
		{message{name: "rollback"}, []string{strings.Replace(yes, "accept", "decline", 1)}, "nothing was done"},
		{message{}, []string{strings.Replace(yes, "true", "false", 1)}, "nothing was done"},
		{book, []string{seat, pay}, "booked 12A"},
		{book, []string{seat, `{"pay":{"action":"cancel"}}`}, "nothing was done"},
		{message{name: "ask_model", args: "-"}, []string{replied}, "the model said Paris"},
		{message{method: "prompts/get", name: "greet", args: `{"who":"Bo"}`}, []string{called}, "Greet Bo from Ann"},
		{message{method: "resources/read", name: "note:///1", args: "-"}, []string{yes}, "a note"},
		{message{name: "extra_1", args: "{}"}, nil, "nothing to do"},
	}
	for _, hole := range append(Holes(), Hole{}) {
		for kind, transport := range transports {
			s := newServer(t)
			if hole.Name != "" {
				s = newServer(t, hole.Name)
			}
			s.pause = func() {}
			t.Run(hole.Name+"/"+kind, func(t *testing.T) {
				send := transport(t, s)
				for _, flow := range flows {
					o := send(flow.m)
					for _, answers := range flow.answers {
						if o.Result.ResultType != "input_required" || o.says() != "" {
							t.Fatalf("%+v was not asked: %s", flow.m, o.text)
						}
						flow.m.state, flow.m.answers = quote(o.Result.RequestState), answers
						o = send(flow.m)
					}
					if o.says() != flow.says {
						t.Fatalf("%+v says %q", flow.m, o.text)
					}
				}
				for _, m := range []message{tools, prompts, {method: "resources/list", args: "-"}, paged} {
					walk(t, send, m)
				}
				if o := send(message{method: "server/discover", args: "-"}); o.Result.SupportedVersions[0] != version {
					t.Error(o.text)
				}
			})
		}
	}
}

// walk reads all pages of a list, and checks how long each of them is.
func walk(t *testing.T, send func(m message) outcome, m message) {
	t.Helper()
	args, found := m.args, []int{}
	for range 5 {
		o := send(m)
		r := o.Result
		found = append(found, len(r.Tools)+len(r.Prompts)+len(r.Resources)+len(r.StructuredContent.Orders))
		cursor := or(r.NextCursor, r.StructuredContent.NextCursor)
		if m.method != "tools/call" && r.CacheScope != "private" {
			t.Errorf("the scope is missing: %s", o.text)
		}
		if cursor == "" {
			break
		}
		if m.method == "tools/call" {
			m.args = args[:len(args)-1] + `,"cursor":` + quote(cursor) + `}`
		} else {
			m.more = `"cursor":` + quote(cursor) + `,`
		}
	}
	if fmt.Sprint(found) != "[3 3 1]" {
		t.Errorf("%s %s has pages of %v", m.method, m.name, found)
	}
}

func TestEveryRejectedStateLooksTheSame(t *testing.T) {
	s := newServer(t)
	now := time.Now()
	s.Now = func() time.Time { return now }
	const want = `{"error":{"code":-32602,"message":"Invalid or expired requestState"},"id":1,"jsonrpc":"2.0"}`
	used := message{state: message{}.begin(t, s), answers: yes}
	used.send(t, s)
	rejected := map[string]message{
		"used":      used,
		"user":      {state: message{}.begin(t, s), bearer: "alice-token"},
		"target":    {state: message{}.begin(t, s), name: "rollback"},
		"method":    {state: message{}.begin(t, s), method: "resources/read", name: "note:///2"},
		"arguments": {state: message{}.begin(t, s), args: `{"env":"staging","x":1}`},
		"cursor":    {state: quote(tools.send(t, s).Result.NextCursor)},
	}
	for _, state := range []string{`""`, `null`, `0`, `true`, `[]`, `{}`, `"s1."`, `"s1.AAAA"`, `"x"`, `"\u0000"`,
		quote("s1." + strings.Repeat("A", 1000)), `["x"]`} {
		rejected[state] = message{state: state}
	}
	for why, m := range rejected {
		if o := m.send(t, s); o.text != want || o.status != 200 {
			t.Errorf("%s: %d %s", why, o.status, o.text)
		}
	}
	state := message{}.begin(t, s)
	now = now.Add(10 * time.Minute)
	if o := (message{state: state, answers: yes}).send(t, s); o.text != want || o.status != 200 {
		t.Errorf("expired: %d %s", o.status, o.text)
	}
}

func TestEveryChangedCharacterIsRejected(t *testing.T) {
	s := newServer(t)
	state := unquote(message{}.begin(t, s))
	for i := range len(state) {
		changed := []byte(state)
		changed[i] = map[bool]byte{true: 'A', false: 'B'}[state[i] != 'A']
		if o := (message{state: quote(string(changed)), answers: yes}).send(t, s); o.Error.Code != codeParams {
			t.Errorf("character %d: %s", i, o.text)
		}
		if o := (message{state: quote(state[:i]), answers: yes}).send(t, s); o.Error.Code != codeParams {
			t.Errorf("cut at %d: %s", i, o.text)
		}
	}
	if o := (message{state: quote(state), answers: yes}).send(t, s); o.says() != "deployed staging" {
		t.Error(o.text)
	}
}

func TestEveryRejectedCursorLooksTheSame(t *testing.T) {
	s := newServer(t)
	now := time.Now()
	s.Now = func() time.Time { return now }
	const want = `{"error":{"code":-32602,"message":"Invalid cursor"},"id":1,"jsonrpc":"2.0"}`
	old := quote(tools.send(t, s).Result.NextCursor)
	now = now.Add(10 * time.Minute)
	for _, cursor := range []string{`""`, `null`, `0`, `3`, `"3"`, `["3"]`, `"s1."`, `"Mw"`, old, message{}.begin(t, s)} {
		list, tool := tools, paged
		list.more = `"cursor":` + cursor + `,`
		tool.args = `{"cursor":` + cursor + `}`
		for _, m := range []message{list, tool} {
			if o := m.send(t, s); o.text != want || o.status != 200 {
				t.Errorf("%s: %d %s", cursor, o.status, o.text)
			}
		}
	}
}

func TestAnswersThatDoNotFitAreAskedForAgain(t *testing.T) {
	s := newServer(t)
	state := message{}.begin(t, s)
	for _, answers := range []string{`{}`, `[]`, `null`, `"x"`, `{"x":{}}`, `{"confirm":{}}`, `{"confirm":"accept"}`, `{"confirm":{"action":"x"}}`,
		`{"confirm":{"action":"accept"}}`, `{"confirm":{"action":"accept","content":{"ok":"true"}}}`,
		`{"confirm":{"action":"accept","content":{"ok":true,"x":[null]}}}`, `{"confirm":{"action":"accept","role":"x","content":{"ok":true}}}`,
		`{"confirm":{"action":"decline","content":null}}`, `{"confirm":{"action":["accept"],"content":{"ok":true}}}`} {
		o := message{state: state, answers: answers}.send(t, s)
		if o.Result.InputRequests["confirm"] == nil || quote(o.Result.RequestState) == state {
			t.Fatalf("%s: %s", answers, o.text)
		}
		state = quote(o.Result.RequestState)
	}
	if o := (message{state: state, answers: yes}).send(t, s); o.says() != "deployed staging" {
		t.Error(o.text)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	refused := []struct {
		m      message
		status int
		code   int
	}{
		{message{more: `"x":1,"x":1,`}, 200, -32602},
		{message{more: `"x":1,"X":1,`}, 200, -32602},
		{message{args: `{"env":"a","env":"a"}`}, 200, -32602},
		{message{args: `{"env":"a","x":[{"k":1,"K":1}]}`}, 200, -32602},
		{message{answers: `{"confirm":{},"confirm":{}}`}, 200, -32602},
		{message{answers: `{"confirm":{"action":"a","Action":"b"}}`}, 200, -32602},
		{message{args: "{\"env\":\"\xff\"}"}, 200, -32602},
		{message{args: `{"env":"\ud800"}`}, 200, -32602},
		{message{args: `{"env":"\udc00"}`}, 200, -32602},
		{message{args: `{"env":"\ud800\u0041"}`}, 200, -32602},
		{message{args: `{"env":"\ud800\\udc00"}`}, 200, -32602},
		{message{args: `{"env":"\ud83d\ude00\\ud800"}`}, 200, 0},
		{message{args: `[]`}, 200, -32602},
		{message{args: `null`}, 200, -32602},
		{message{args: `{}`}, 200, -32602},
		{message{args: `{"env":1}`}, 200, -32602},
		{message{args: `{"env":"a","build":"1"}`}, 200, -32602},
		{message{name: "x"}, 200, -32602},
		{message{args: `{"env":}`}, 400, -32700},
		{message{args: `{"env":"a","x":` + strings.Repeat("[", 61) + strings.Repeat("]", 61) + `}`}, 200, 0},
		{message{args: `{"env":"a","x":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}`}, 400, -32600},
		{message{args: `{"env":"` + strings.Repeat("x", maxBody) + `"}`}, 413, -32600},
		{message{version: "2025-06-18"}, 400, -32022},
		{message{version: "-"}, 400, -32022},
		{message{saysName: "rollback"}, 400, -32020},
		{message{saysMethod: "tools/list"}, 400, -32020},
		{message{saysName: "=?base64?ZGVwbG95?="}, 200, 0},
		{message{saysName: "=?base64?ZGVwbG95"}, 400, -32020},
		{message{caps: `{}`}, 400, -32021},
		{message{caps: `{"elicitation":{"url":{}}}`}, 400, -32021},
		{message{caps: `{"elicitation":{}}`}, 200, 0},
		{message{name: "ask_model", caps: `{"elicitation":{}}`}, 400, -32021},
		{message{method: "x/y"}, 404, -32601},
		{message{method: "tools/list", state: `"x"`}, 200, 0},
		{message{bearer: "x"}, 401, 0},
		{message{method: `tools/call","Method":"x`}, 400, -32600},
	}
	for _, r := range refused {
		if o := r.m.send(t, newServer(t)); o.status != r.status || o.Error.Code != r.code {
			t.Errorf("%.200s: %d %.300s", r.m.body(), o.status, o.text)
		}
	}
}

func TestAStateIsUsedOnceByManyAtATime(t *testing.T) {
	s := newServer(t)
	m := message{state: message{}.begin(t, s), answers: yes}
	var passed atomic.Int32
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			if m.send(t, s).says() != "" {
				passed.Add(1)
			}
		})
	}
	running.Wait()
	if passed.Load() != 1 {
		t.Errorf("%d uses", passed.Load())
	}
}

func TestUsesAreForgottenOnlyWhenTheyExpired(t *testing.T) {
	s := newServer(t)
	now := time.Now()
	s.Now = func() time.Time { return now }
	first := message{state: message{}.begin(t, s), answers: yes}
	first.send(t, s)
	now = now.Add(9 * time.Minute)
	for range 300 {
		message{state: message{}.begin(t, s), answers: yes}.send(t, s)
	}
	if first.send(t, s).says() != "" {
		t.Error("a use was forgotten")
	}
	now = now.Add(10 * time.Minute)
	for range 700 {
		message{state: message{}.begin(t, s), answers: yes}.send(t, s)
	}
	if len(s.used.records) >= 1000 {
		t.Error("no use was forgotten")
	}
}

func TestAServerWithoutLimitsDies(t *testing.T) {
	deep := message{args: strings.Repeat("[", 100) + strings.Repeat("]", 100)}
	large := message{args: `"` + strings.Repeat("x", maxBody) + `"`}
	for _, killer := range []message{deep, large} {
		s := newServer(t, "no-limits")
		web := httptest.NewServer(s)
		for i, m := range []message{killer, {}, tools} {
			if o, err := post(t, web.URL, m); err == nil {
				t.Errorf("message %d was answered: %s", i, o.text)
			}
		}
		web.Close()
		send, done := overStdio(t, newServer(t, "no-limits"))
		if o := send(killer.body()); o.text != "" {
			t.Errorf("answered %s", o.text)
		}
		if err := <-done; err == nil {
			t.Error("Serve returned no error")
		}
		send, _ = overStdio(t, newServer(t))
		if o := send(killer.body()); o.Error.Code != codeRequest {
			t.Errorf("the sound server answered %s", o.text)
		}
		if o := send(message{}.body()); o.Result.RequestState == "" {
			t.Errorf("the sound server answered %s", o.text)
		}
	}
}

func TestStdioAnswersRequestsConcurrently(t *testing.T) {
	s := newServer(t, "racy-use")
	arrived, release := make(chan struct{}), make(chan struct{})
	s.pause = func() { close(arrived); <-release }
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), in, answers) }()
	lines := bufio.NewScanner(out)
	next := func() outcome { lines.Scan(); return parsed(t, lines.Text()) }

	io.WriteString(feed, message{}.body()+"\n")
	slow := message{state: quote(next().Result.RequestState), answers: yes}
	io.WriteString(feed, slow.body()+"\r\n\n")
	<-arrived
	io.WriteString(feed, tools.body()+"\n")
	if o := next(); len(o.Result.Tools) == 0 {
		t.Errorf("the second request was not answered first: %s", o.text)
	}
	close(release)
	if o := next(); o.says() != "deployed staging" {
		t.Errorf("the first request was not answered: %s", o.text)
	}
	go func() { io.WriteString(feed, prompts.body()); feed.Close() }() // without a line break
	if o := next(); len(o.Result.Prompts) == 0 {
		t.Errorf("the last line was not answered: %s", o.text)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheVersionOfTheMessageCounts(t *testing.T) {
	old := strings.Replace(message{state: `"x"`, answers: yes}.body(), version, "2025-06-18", 1)
	none := strings.Replace(message{state: `"x"`, answers: yes}.body(), "protocolVersion", "x", 1)
	for _, body := range []string{old, none} {
		if send, _ := overStdio(t, newServer(t)); send(body).Error.Code != -32022 {
			t.Error("stdio took another version")
		}
		if send, _ := overStdio(t, newServer(t, "version-downgrade")); send(body).says() != "deployed staging" {
			t.Error("stdio refused another version, in spite of the hole")
		}
		for _, hole := range []string{"version-downgrade", "headers-unchecked"} {
			r := newServer(t, hole).handle([]byte(body), "", message{}.header())
			if r.fault == nil || r.fault.code != -32022 {
				t.Errorf("%s took a message that contradicts its header", hole)
			}
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	in, feed := io.Pipe()
	defer feed.Close()
	done := make(chan error, 1)
	go func() { done <- newServer(t).Serve(ctx, in, io.Discard) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
