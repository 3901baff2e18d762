package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// probe is one run against one server.
type probe struct {
	Options
	server Server
	ctx    context.Context
	honest map[string]honest // the keys are the results of Target.String
	pages  []book            // the lists and tools that issue cursors
	schema map[string]schema // maps the name of a tool to the schema of its arguments
	burns  bool              // true if a state no longer works after the server has refused an attack on it
	old    *flow             // a flow that was begun before all attacks, for the attack "expired"
	born   time.Time         // the time just after the server issued the state in p.old

	prepare sync.Once
	secrets *strings.Replacer // replaces the access tokens, in plain text and encoded; nil if there are none
	exposed bool              // true if the server put an access token into a state or a cursor

	notes      []string        // what the reader of the report must know
	rejections []exchange      // the refusals that trial.tell has kept for later attacks
	results    int             // how many results of calls of revision 2026-07-28 there were
	untyped    []exchange      // the first of them without a resultType
	valid      map[string]bool // the calls (see message.call) to which a target answered with questions

	mu       sync.Mutex
	number   int
	sent     int
	silences int // how many requests in a row got no answer
	ready    time.Time
	ended    error // why the probe sends nothing more; nil while it sends
	progress Progress
}

const (
	errBudget      = textError("the budget of requests is used up")
	errInterrupted = textError("the probe was interrupted")
)

// Run attacks a server and reports which attacks got through. It returns an error only if the
// options are wrong. All other problems are in the report. The calls have real effects on
// the server, so run the probe against a test system.
func Run(ctx context.Context, server Server, options Options) (*Report, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	if options.MaxTime == 0 {
		options.MaxTime = 30*time.Minute + options.MaxAge
	}
	ctx, cancel := context.WithTimeoutCause(ctx, options.MaxTime, textError("the probe may take "+options.MaxTime.String()+", and they are over"))
	defer cancel()
	if options.sleep == nil {
		options.sleep = func(d time.Duration) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
	}
	p := &probe{Options: options, server: server, ctx: ctx, honest: map[string]honest{}, schema: map[string]schema{}, valid: map[string]bool{}}
	report := &Report{Server: p.redact(server.name()), Transport: server.kind()}
	p.look(report)
	for i := range attacks {
		if a := &attacks[i]; options.Only == nil || slices.Contains(options.Only, a.ID) {
			p.progress = Progress{Attack: a.ID, Number: i + 1, Of: len(attacks)}
			report.Results = append(report.Results, p.attempt(a, report))
		}
	}
	report.Requests = p.sent
	for _, t := range p.Targets {
		report.rounds += len(p.honest[t.String()].asks)
	}
	if p.ended != nil && report.Problem == "" {
		report.Problem = p.brief(p.ended)
	}
	if p.exposed {
		report.Notes = append(report.Notes, "the server puts an access token into a state or a cursor; what was sent is not shown, because a changed token is nearly the token")
	}
	report.judge(options.Require)
	p.redactAll(report)
	return report, nil
}

// look finds out, before the attacks, what the server offers and how honest calls end.
func (p *probe) look(report *Report) {
	defer func() {
		if fault := recover(); fault != nil {
			report.Problem = p.brief(fmt.Errorf("the probe itself failed: %v", fault))
		}
	}()
	hello := p.send(message{method: "server/discover"}.with("_meta", meta(canEverything))).reply
	if hello.lost != nil && p.send(message{method: "server/discover"}.with("_meta", meta(canEverything))).reply.lost != nil {
		report.Problem = "the server does not answer: " + p.brief(hello.lost)
		p.ended = errors.New(report.Problem)
		return
	}
	if result := hello.message.Result; result != nil {
		report.ServerName = strings.TrimSpace(clip(p.redact(result.ServerInfo.Name), 80) + " " + clip(p.redact(result.ServerInfo.Version), 40))
	}
	p.readTools()
	named := len(p.Targets) > 0
	if !named {
		p.Targets = p.fixtures()
	}
	if len(p.Targets) == 0 {
		report.Notes = append(report.Notes, "no tool, prompt or resource was named, and the server has none of the conformance suite's, so no state was asked for")
	}
	for _, t := range p.Targets {
		if err := p.learn(t); err != nil {
			report.noteFailure(p.brief(p.failure(t, err)), named)
			continue
		}
		report.Targets = append(report.Targets, t.String())
	}
	report.Notes = append(report.Notes, p.notes...)
	p.findPages()
	for i := range p.Paged {
		b := book{method: "tools/call", tool: &p.Paged[i]}
		if slices.ContainsFunc(p.pages, func(other book) bool { return other.tool == b.tool }) {
			continue
		}
		if _, err := p.walk(b, firstUser); err != nil { // once more, to get the reason
			report.noteFailure(p.brief(err), true)
		} else {
			p.pages = append(p.pages, b)
		}
	}
	if speaks := hello.message.Result != nil || hello.message.Error != nil; !speaks && len(report.Targets)+len(p.pages) == 0 {
		report.Problem = "the server does not answer as an MCP server does: " + p.brief(textError(hello.String()))
	}
	for _, b := range p.pages {
		report.Cursors = append(report.Cursors, b.String())
	}
	if known := (&trial{probe: p}).targets(); p.MaxAge > 0 && len(known) > 0 {
		if f, err := p.mint(known[0]); err == nil {
			p.old, p.born = f, time.Now()
		}
	}
}

// noteFailure adds a note that says why a target or a list cannot be attacked. If named is true,
// the operator named this target or list, and the verdict gives the reason too.
func (r *Report) noteFailure(why string, named bool) {
	r.Notes = append(r.Notes, why)
	if named && r.failure == "" {
		r.failure = why
	}
}

// failure says why a target cannot be attacked, and what to do about it.
func (p *probe) failure(t Target, err error) error {
	text := strings.TrimPrefix(err.Error(), t.String()+": ")
	text, refused := strings.CutPrefix(text, notAnswered)
	if !refused {
		return fmt.Errorf("%s cannot be attacked: %s", t, text)
	}
	own, listed := p.schema[t.Name]
	switch {
	case t.Method == "tools/call" && len(p.schema) > 0 && !listed:
		text += "; the server lists no such tool"
	case t.Arguments == "" && len(own.Required) > 0:
		text += "; give arguments with --args: it needs " + strings.Join(own.Required, ", ")
	case t.Arguments == "" && t.Method != "resources/read" && strings.Contains(text, "error -32602"):
		text += "; if it needs arguments, give arguments with --args"
	}
	return fmt.Errorf("the honest call of %s failed: %s", t, text)
}

// maxLookRequests returns the maximum number of requests that probe.look sends. rounds is the
// number of rounds in which targets ask questions, for all targets together. paged is the number
// of paged tools.
func maxLookRequests(rounds, paged int) int { return 2 + maxPages + 11*rounds + len(lists) + 3*paged }

// maxPages limits how many pages of the tool list the probe reads.
const maxPages = 50

// readTools reads the list of tools, and keeps the schemas of their arguments.
func (p *probe) readTools() {
	m := message{method: "tools/list"}.with("_meta", meta(canEverything))
	size := 0
	for range maxPages {
		r := p.send(m).reply
		result := r.message.Result
		if size += len(r.raw); result == nil || size > maxAnswer {
			return
		}
		for _, tool := range result.Tools {
			p.schema[tool.Name] = readSchema(tool.InputSchema)
		}
		if result.NextCursor == nil || *result.NextCursor == "" {
			return
		}
		m = m.with("cursor", quoted(*result.NextCursor))
	}
}

// fixturePrefix is the beginning of certain tool names. The official conformance suite tests multi
// round-trip requests with these tools.
const fixturePrefix = "test_input_required_result_"

// fixtures returns the tools of the conformance suite that the server has.
func (p *probe) fixtures() (all []Target) {
	for name := range p.schema {
		if strings.HasPrefix(name, fixturePrefix) {
			all = append(all, Target{Method: "tools/call", Name: name})
		}
	}
	slices.SortFunc(all, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// attempt tries one attack, unless something that it needs is missing.
func (p *probe) attempt(a *Attack, report *Report) Result {
	result := Result{Attack: *a, Outcomes: map[string]int{}}
	t := &trial{probe: p, attack: a, result: &result}
	before := p.sent
	if why := p.lacks(a.needs, report); why != "" {
		t.skip(why)
	} else if p.ended != nil {
		t.skip("the probe had ended: " + p.ended.Error())
	} else {
		if p.Progress != nil {
			p.progress.Requests = before
			p.Progress(p.progress)
		}
		t.run()
	}
	t.settle()
	result.Requests = p.sent - before
	result.Why = p.brief(textError(result.Why))
	return result
}

// brief(err) returns the error's text, shortened and without access tokens. The text may come from
// the server, so it can be very long.
func (p *probe) brief(err error) string { return clip(p.redact(err.Error()), 480) }

// run makes the honest calls, and then tries the attack. If the code of the probe panics, run calls
// t.unclear, and the results of all other attacks are kept.
func (t *trial) run() {
	defer func() {
		if fault := recover(); fault != nil {
			t.unclear(fmt.Errorf("the probe itself failed: %v", fault))
		}
	}()
	if err := t.callHonestly(t.attack); err != nil {
		t.unclear(fmt.Errorf("the honest call before it failed: %w", err))
		return
	}
	t.attack.try(t)
	if t.end(); t.ended != nil && t.result.Verdict == "" {
		t.unclear(t.ended)
	}
}

// lacks says why an attack with these needs cannot be tried. It returns "" if the
// attack can be tried.
func (p *probe) lacks(needs need, report *Report) string {
	known := len((&trial{probe: p}).targets())
	switch {
	case report.Problem != "":
		return report.Problem
	case needs&needHTTP != 0 && p.server.kind() != "http":
		return "over stdio there are no headers"
	case needs&needUsers != 0 && p.server.kind() != "http":
		return "over stdio there is one user"
	case needs&needUsers != 0 && (p.Bearer == "" || p.OtherBearer == ""):
		return "it needs the access tokens of two users"
	case needs&needMaxAge != 0 && p.MaxAge == 0:
		return "it needs the age after which a state must be refused"
	case needs&needState != 0 && known == 0:
		return "the server issued no state"
	case needs&needCursor != 0 && len(p.pages) == 0:
		return "the server issued no cursor"
	}
	return ""
}

// callHonestly makes the honest calls before an attack. It returns an error if one of them fails.
func (p *probe) callHonestly(a *Attack) error {
	if a.needs&needState != 0 {
		for _, t := range (&trial{probe: p}).targets() {
			asks, last, err := p.control(t, firstUser)
			if err != nil {
				return err
			}
			if !p.through(&flow{target: t, round: len(asks)}, last) {
				return fmt.Errorf("%s: %s", t, last)
			}
		}
	}
	if a.needs&needCursor != 0 {
		for _, b := range p.pages {
			if _, err := p.walk(b, firstUser); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends one request. It first waits as long as Options.Rate requires.
func (p *probe) send(m message) exchange {
	id, wait, err := p.admit()
	if err != nil {
		return exchange{message: m, reply: &reply{lost: err}}
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-p.ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.Timeout)
	defer cancel()
	bearer := [...]string{p.Bearer, p.OtherBearer, ""}[m.as]
	m.userHeader = p.UserHeader
	r := p.server.send(ctx, m, id, bearer)
	r.hide = p.redact
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exposed = p.exposed || p.exposes(r)
	if result := r.message.Result; result != nil && m.asksForType() {
		p.results++
		if result.ResultType == "" && len(p.untyped) < enough {
			p.untyped = append(p.untyped, exchange{message: m, id: id, reply: r})
		}
	}
	if r.lost == nil {
		p.silences = 0
	} else if p.silences++; p.silences >= maxSilences && p.ended == nil {
		p.ended = fmt.Errorf("the server gave no answer %d times in a row: %w", maxSilences, r.lost)
	}
	return exchange{message: m, id: id, reply: r}
}

// admit counts a request. It returns the id of the request and how long to wait before sending
// it. It returns an error if the probe must send nothing more.
func (p *probe) admit() (id int, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil && p.Budget > 0 && p.sent >= p.Budget {
		p.ended = errBudget
	}
	if p.end(); p.ended != nil {
		return 0, 0, p.ended
	}
	p.sent++
	p.number++
	if p.Rate > 0 {
		now := time.Now()
		if p.ready.Before(now) {
			p.ready = now
		}
		wait = p.ready.Sub(now)
		p.ready = p.ready.Add(time.Second / time.Duration(p.Rate))
	}
	if p.Progress != nil && p.sent%100 == 0 {
		p.progress.Requests = p.sent
		p.Progress(p.progress)
	}
	return p.number, wait, nil
}

// end sets p.ended if MaxTime has passed or a user interrupted the probe.
func (p *probe) end() {
	if p.ended != nil || p.ctx.Err() == nil {
		return
	}
	p.ended = errInterrupted
	if over, ok := context.Cause(p.ctx).(textError); ok {
		p.ended = over
	}
}

// stopped reports whether the run ended because the budget was used up, MaxTime has passed or a
// user interrupted the probe. It returns false if the run goes on, or ended because the server
// gave no answers.
func (p *probe) stopped() bool { return p.ended == errBudget || p.ctx.Err() != nil }

// maxSilences is the number of unanswered requests in a row after which the probe ends the run.
const maxSilences = 5
