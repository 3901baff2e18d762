package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/wire"
)

// pipeRig is a client and a server with a pipe between them. The test is both of them: when one has written a line, the
// pipe has moved it.
type pipeRig struct {
	*rig
	pipe           *wire.Pipe
	server, client sink // what each of them gets
}

// sink keeps the lines that one side of a pipe gets.
type sink struct {
	line func(line string) // is called for each line; nil means nothing is called

	mu   sync.Mutex
	all  strings.Builder
	read int   // how much of all has been taken
	err  error // what a write returns
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	err := s.err
	if err == nil {
		s.all.Write(p)
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if s.line != nil {
		for _, line := range s.take() {
			s.line(line)
		}
	}
	return len(p), nil
}

func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// take returns the lines that ended since the last call.
func (s *sink) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(s.all.String()[s.read:], "\n")
	last := len(lines) - 1
	s.read = s.all.Len() - len(lines[last])
	return lines[:last]
}

func newPipe(t testing.TB, policy tripseal.Config, config wire.Config) *pipeRig {
	t.Helper()
	r := &pipeRig{rig: newRig(t, policy, wire.Config{})}
	config.Boundary, config.Logger = r.engine.Boundary(), slog.New(slog.NewTextHandler(&r.log, nil))
	var err error
	if r.engine, err = wire.New(config); err != nil {
		t.Fatal(err)
	}
	r.pipe = r.engine.Pipe(&r.server, &r.client, tripseal.User("alice"))
	t.Cleanup(func() {
		if strings.Contains(r.client.text(), canary) {
			t.Error("a plaintext reached the client")
		}
	})
	return r
}

// exactPipe returns a pipe that writes no marks.
func exactPipe(t testing.TB) *pipeRig {
	return newPipe(t, tripseal.Config{}, wire.Config{Proxied: true})
}

// send writes lines of the client.
func (r *pipeRig) send(lines ...string) { r.write(r.pipe.Client, lines) }

// say writes lines of the server.
func (r *pipeRig) say(lines ...string) { r.write(r.pipe.Server, lines) }

func (r *pipeRig) write(to io.Writer, lines []string) {
	r.t.Helper()
	for _, line := range lines {
		if n, err := io.WriteString(to, line+"\n"); err != nil || n != len(line)+1 {
			r.t.Fatalf("%d, %v", n, err)
		}
	}
}

// serverGot checks which lines the server got since the last check.
func (r *pipeRig) serverGot(want ...string) { r.t.Helper(); r.got("server", &r.server, want) }

// clientGot checks which lines the client got since the last check.
func (r *pipeRig) clientGot(want ...string) { r.t.Helper(); r.got("client", &r.client, want) }

func (r *pipeRig) got(who string, s *sink, want []string) {
	r.t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		r.t.Errorf("the %s got\n%.2000q\nand not\n%.2000q\n%s", who, got, want, &r.log)
	}
}

// one returns the only line that a side got since the last check.
func (r *pipeRig) one(s *sink) string {
	r.t.Helper()
	got := s.take()
	if len(got) != 1 {
		r.t.Fatalf("not one line, but %d: %.2000q\n%s", len(got), got, &r.log)
	}
	return got[0]
}

func (r *pipeRig) clientGotError(id string, code int64) {
	r.t.Helper()
	checkError(r.t, r.one(&r.client), id, code)
}

// clientGotToken returns the token in the client's only line, which must be the answer to the request.
func (r *pipeRig) clientGotToken(id string) string {
	r.t.Helper()
	line := r.one(&r.client)
	if got := string(member(r.t, line, "id")); got != id {
		r.t.Fatalf("an answer to %s, not %s: %s", got, id, line)
	}
	return token(r.t, line)
}

// pipeCall returns a call of a tool. The parameter members is "", or a comma and further members of the params.
func pipeCall(id, tool, members string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool +
		`","arguments":{"env":"x"}` + members + `}}`
}

// pipeAsk returns a server's answer with a question and the state.
func pipeAsk(id, state string) string {
	return strings.Replace(asking(`"`+state+`"`, `{"sure":`+form+`}`), `"id":7`, `"id":`+id, 1)
}

// pipeRetry returns the further members of a call that answers the question of pipeAsk.
func pipeRetry(token string) string {
	return state(token) + `,"inputResponses":{"sure":` + accept + `}`
}

func pipeCancel(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

const aside = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"n":12345678901234567890,"f":1.0}}`

func stateIn(t testing.TB, line string) string {
	return textOf(member(t, line, "params", "requestState"))
}

func TestTheServerSeesItsStateAndTheClientATokenOverAPipe(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.say(aside)
	r.clientGot(aside)
	r.say(pipeAsk("1", canary+` \u0022 one`))
	first := r.clientGotToken("1")
	r.server.take()
	r.send(pipeCall(`"2"`, "deploy", pipeRetry(first)))
	if got := stateIn(t, r.one(&r.server)); got != canary+` " one` {
		t.Errorf("the server got the state %q", got)
	}
	done := `{"jsonrpc":"2.0","id":"2","result":{"content":[]}}`
	r.say(done)
	r.clientGot(done)
	r.send(pipeCall("3", "destroy", pipeRetry(first)))
	r.clientGotError("3", -32602)
	r.send(pipeCall("4", "deploy", pipeRetry("forged")))
	r.clientGotError("4", -32602)
	bob := r.engine.Pipe(&r.server, &r.client, tripseal.User("bob"))
	r.write(bob.Client, []string{pipeCall("5", "deploy", pipeRetry(first))})
	r.clientGotError("5", -32602)
	r.serverGot()
}

func TestTheServerSeesItsCursorAndTheClientATokenOverAPipe(t *testing.T) {
	r := exactPipe(t)
	for _, list := range lists {
		request := func(id, cursor string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + list +
				`","params":{` + cursor + `"uri":"file:///d"}}`
		}
		r.send(request("1", ""))
		r.server.take()
		r.say(`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"` + canary + `"}}`)
		sealed := textOf(member(t, r.one(&r.client), "result", "nextCursor"))
		r.send(request("2", `"cursor":"`+sealed+`",`))
		r.serverGot(request("2", `"cursor":"`+canary+`",`))
		r.send(request("3", `"cursor":"plain",`))
		r.clientGotError("3", -32602)
		r.say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		r.clientGot(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	}
}

func TestAnswersInAnyOrderReachTheirRequests(t *testing.T) {
	const count = 64
	r := exactPipe(t)
	tokens := make([]string, count)
	for i := range count {
		r.send(pipeCall(strconv.Itoa(i), "tool-"+strconv.Itoa(i), ""))
	}
	for i := count - 1; i >= 0; i-- {
		r.say(pipeAsk(strconv.Itoa(i), fmt.Sprint(canary, i)))
		tokens[i] = r.clientGotToken(strconv.Itoa(i))
	}
	for i, token := range tokens {
		r.server.take()
		r.send(pipeCall(`"other"`, "tool-"+strconv.Itoa((i+1)%count), pipeRetry(token)))
		r.clientGotError(`"other"`, -32602)
		r.send(pipeCall(strconv.Itoa(i), "tool-"+strconv.Itoa(i), pipeRetry(token)))
		if got := stateIn(t, r.one(&r.server)); got != fmt.Sprint(canary, i) {
			t.Errorf("%d got the state %s", i, got)
		}
	}
}

// A second answer is one of these, too.
func TestAnAnswerToNoRequestPassesOnlyWithoutState(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.say(
		pipeAsk("2", canary), pipeAsk(`"1"`, canary), pipeAsk("null", canary),
		`{"jsonrpc":"2.0","id":3,"result":{"nextCursor":"`+canary+`"}}`,
		`{"jsonrpc":"2.0","id":4,"result":{"request\u0053tate":"`+canary+`"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","result":{"requestState":"`+canary+`"}}`,
		`{"jsonrpc":"2.0","method":"x","params":{"requestState":"`+canary+`"}}`,
	)
	r.clientGot()
	r.say(`{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`)
	r.clientGot(`{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`)
	r.say(pipeAsk("1", canary))
	r.clientGotToken("1")
	r.say(pipeAsk("1", canary))
	r.clientGot()
	r.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	r.clientGot(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// Otherwise the client would wait for ever.
func TestAnAnswerThatIsRefusedIsAnErrorForTheClient(t *testing.T) {
	r := exactPipe(t)
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"requestState":"` + canary + `"}}`,
		`{"jsonrpc":"2.0","ID":1,"result":{"requestState":"` + canary + `"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"x":1},"result":{"requestState":"` + canary + `"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"requestState":"` + canary + "\xff\"}}",
		`{"result":{"requestState":"` + canary + `","deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) +
			`},"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"result":{"x":` + "\r" + pipeAsk("1", canary) + "\r}}",
		`{"jsonrpc":"2.0","id":1}`,
	} {
		r.send(pipeCall("1", "deploy", ""))
		r.say(answer)
		r.clientGotError("1", -32603)
	}
}

func TestRequestsOfTheServerAndTheirAnswersPass(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.server.take()
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`,
	} {
		r.say(request)
		r.clientGot(request)
	}
	answer := `{"jsonrpc":"2.0","id":1,"result":` + sampled + `}`
	r.send(answer)
	r.serverGot(answer)
	r.say(pipeAsk("1", canary)) // the client's request with the same id still waits
	r.clientGotToken("1")
}

func TestARequestThatIsRefusedForItsIDDoesNotSpendItsToken(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newPipe(t, tripseal.Config{Replay: store}, wire.Config{Proxied: true})
	r.send(pipeCall("1", "deploy", ""))
	r.say(pipeAsk("1", canary))
	retry := pipeRetry(r.clientGotToken("1"))
	r.send(pipeCall("2", "other", ""))
	r.send(pipeCall("2", "deploy", retry))
	r.clientGotError("2", -32600)
	r.server.take()
	r.send(pipeCall("3", "deploy", retry))
	if got := stateIn(t, r.one(&r.server)); got != canary {
		t.Errorf("the server got the state %q", got)
	}
	r.send(pipeCall("4", "deploy", retry))
	r.clientGotError("4", -32602)
}

func TestARequestThatIsNotForwardedFreesItsID(t *testing.T) {
	r := exactPipe(t)
	for range 3 {
		r.send(pipeCall("1", "deploy", pipeRetry("forged")))
		r.clientGotError("1", -32602)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"requestState":"x"}}`)
		r.clientGotError("1", -32602)
	}
	r.serverGot()
}

func TestAServerThatEndsLeavesErrorsForTheCallsThatWait(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""), pipeCall(`"two"`, "deploy", ""), page("tools/list", ""))
	r.say(pipeAsk("1", canary))
	r.clientGotToken("1")
	io.WriteString(r.pipe.Server, `{"jsonrpc":"2.0","id":7,"result":{"nextCursor":"`+canary) // is cut off
	r.pipe.Server.Close()
	left := r.client.take()
	slices.Sort(left)
	if len(left) != 2 {
		t.Fatalf("%q", left)
	}
	checkError(t, left[0], `"two"`, -32603)
	checkError(t, left[1], "7", -32603)
	r.pipe.Server.Close()
	if _, err := io.WriteString(r.pipe.Server, aside+"\n"); err == nil {
		t.Error("a server that has ended could write")
	}
	if _, err := io.WriteString(r.pipe.Client, pipeCall("9", "deploy", "")+"\n"); err == nil {
		t.Error("a client could call a server that has ended")
	}
	r.clientGot()
}

func TestTheLastLineOfTheServerNeedsNoLineFeed(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	io.WriteString(r.pipe.Server, pipeAsk("1", canary))
	r.clientGot()
	r.pipe.Server.Close()
	r.clientGotToken("1")
}

func TestAServerThatTakesNoInputFailsRequests(t *testing.T) {
	r := exactPipe(t)
	r.server.fail(io.ErrClosedPipe)
	for range 3 {
		r.send(pipeCall("1", "deploy", ""))
		r.clientGotError("1", -32603)
	}
	r.send(`{"jsonrpc":"2.0","method":"x"}`) // nobody waits for an answer
	r.clientGot()
}

func TestAClientThatTakesNoAnswersEndsBothStreams(t *testing.T) {
	gone := errors.New("gone")
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.client.fail(gone)
	for range 2 {
		if n, err := io.WriteString(r.pipe.Server, aside+"\n"+aside+"\n"); n != 0 || !errors.Is(err, gone) {
			t.Errorf("the server wrote %d bytes: %v", n, err)
		}
		lines := "no message\n" + pipeCall("2", "x", "") + "\n"
		if n, err := io.WriteString(r.pipe.Client, lines); n != 0 || !errors.Is(err, gone) {
			t.Errorf("the client wrote %d bytes: %v", n, err)
		}
	}
	r.pipe.Server.Close()
	r.serverGot(pipeCall("1", "deploy", ""))
	r.clientGot()
}

func TestNothingIsWrittenToTheClientAfterShut(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.pipe.Shut()
	for range 2 {
		if _, err := io.WriteString(r.pipe.Server, pipeAsk("1", canary)+"\n"); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	}
	r.pipe.Server.Close()
	r.clientGot()
}

func TestManyWritersAtOnceGetTheirOwnAnswers(t *testing.T) {
	const writers, rounds = 8, 50
	r := newPipe(t, tripseal.Config{}, wire.Config{})
	var lost sync.WaitGroup
	r.server.line = func(line string) { // the server answers in goroutines of its own, with a notification before
		id, mark := string(member(t, line, "id")), markIn(t, line)
		if id == "" { // the client cancels a call
			return
		}
		if r.engine.Through(context.Background(), mark) == nil {
			t.Errorf("the mark of %s is unknown", id)
		}
		lost.Go(func() { r.say(aside, pipeAsk(id, canary+strings.Trim(id, `"`)), pipeAsk(id, canary)) })
	}
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range rounds {
				id := fmt.Sprintf(`"%d-%d"`, w, i)
				r.send(pipeCall(id, "tool-"+strings.Trim(id, `"`), ""))
				if i%10 == 5 {
					r.send("no message")
				}
				if i%10 == 0 {
					r.send(pipeCancel(id))
					<-r.pipe.Idle()
				}
			}
		})
	}
	wait.Wait()
	lost.Wait()
	<-r.pipe.Idle()
	r.server.line = nil
	tokens := 0
	for _, line := range r.client.take() {
		if line == aside || strings.HasPrefix(line, `{"jsonrpc":"2.0","id":null,"error"`) {
			continue
		}
		tokens++
		tool := "tool-" + textOf(member(t, line, "id"))
		r.send(pipeCall("1", tool, pipeRetry(token(t, line))))
		if got := stateIn(t, r.one(&r.server)); "tool-"+strings.TrimPrefix(got, canary) != tool {
			t.Errorf("%s got the state %s", tool, got)
		}
		r.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	if tokens < writers*rounds*9/10 {
		t.Errorf("%d answers for %d calls", tokens, writers*rounds)
	}
}
