package wire

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/tripseal/tripseal/internal/whose"
)

// The limits for requests that the server has not answered.
const (
	maxPending   = 1 << 10  // requests that are not cancelled
	maxBytes     = 64 << 20 // total length of the messages of requests that are not cancelled, in bytes
	maxCancelled = 1 << 16  // cancelled requests, of which only the id is kept
	maxID        = 256      // length of an id in bytes
)

var (
	errInUse = errors.New("the id of a request is too long, or similar to the id of a request that has no answer yet")
	errFull  = errors.New("too many requests wait for an answer")
)

// pending holds the requests that the server has not answered. It is safe for concurrent use.
//
// An answer belongs to the request with the same id, even if the id is a string and the answer writes it with other
// escapes. But a server may answer the id 1.0, or "1", with the id 1. If two ids that a server could confuse were in
// use at once, the state of one request could be sealed for the other. So a request is refused while a request with a
// similar id is pending.
type pending struct {
	mu        sync.Mutex
	requests  map[string]*request // the key of a request is the likeness of its id (see the function likeness)
	waiting   int                 // how many requests are not cancelled
	bytes     int                 // the total length of the messages of requests that are not cancelled, in bytes
	cancelled []*request          // the oldest first; some may have got their answers since
	ended     bool
	idle      chan struct{} // closed when no request waits
}

type request struct {
	id       string    // as the function sameID returns it
	exchange *Exchange // nil after the request is cancelled
	bytes    int
}

func newPending() *pending {
	p := &pending{requests: map[string]*request{}, idle: make(chan struct{})}
	close(p.idle)
	return p
}

// check returns an error if a similar id is in use or a limit is reached. The parameter bytes is the length of the
// request's message.
func (p *pending) check(id string, bytes int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case id == "": // not a request
	case len(id) > maxID || p.requests[likeness(id)] != nil:
		return errInUse
	case p.ended || p.waiting == maxPending || p.bytes+bytes > maxBytes:
		return errFull
	}
	return nil
}

// add adds a request that has passed [pending.check]. Nothing else may be added between the two. If the server gives no
// more answers, it returns false.
func (p *pending) add(x *Exchange, bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.requests[likeness(x.sameID)] = &request{x.sameID, x, bytes}
	if p.waiting++; p.waiting == 1 {
		p.idle = make(chan struct{})
	}
	p.bytes += bytes
	if x.mark != "" {
		x.engine.marks.Store(x.mark, x)
		whose.Arrivals.LoadOrStore(x.mark, &x.arrival) // package elicit may have got its own
	}
	return true
}

// cancel discards the exchange of a request that the client has cancelled. The id stays in use until the server
// answers, or until maxCancelled later requests are cancelled too, because most servers never answer. If the id were
// freed at once, a later request with the same id could get the answer to the cancelled one.
func (p *pending) cancel(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(id)]
	if r == nil || r.id != id || r.exchange == nil {
		return
	}
	p.leave(r)
	r.id, r.exchange = strings.Clone(id), nil // a clone, or the id keeps the message in memory
	if p.cancelled = append(p.cancelled, r); len(p.cancelled) > maxCancelled {
		oldest := p.cancelled[0]
		p.cancelled = p.cancelled[1:]
		if key := likeness(oldest.id); p.requests[key] == oldest {
			delete(p.requests, key)
		}
	}
}

// leave says that a request waits no more.
func (p *pending) leave(r *request) {
	p.waiting--
	p.bytes -= r.bytes
	r.exchange.forgetMark()
	if p.waiting == 0 {
		close(p.idle)
	}
}

// take frees the id of a request that gets its answer now, and returns the exchange of this request. It returns nil if
// there is no such request, or if the client has cancelled the request.
func (p *pending) take(id string) *Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := likeness(id)
	r := p.requests[key]
	if r == nil || r.id != id {
		return nil
	}
	delete(p.requests, key)
	if r.exchange != nil {
		p.leave(r)
	}
	return r.exchange
}

// end returns the exchanges that the server has not answered and will not answer. After this call, no request can be
// added.
func (p *pending) end() (left []*Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for key, r := range p.requests {
		if r.exchange != nil {
			left = append(left, r.exchange)
			p.leave(r)
			delete(p.requests, key)
		}
	}
	return left
}

// likeness returns the same text for all ids that a server could confuse. A server may read a number as a float64, or a
// string as a number. The given id is JSON text.
func likeness(id string) string {
	text := id
	json.Unmarshal([]byte(id), &text) // leaves it as it is if the id is not a string
	number, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(text), "_", ""), 64)
	if err != nil {
		return "text " + text
	}
	return "number " + strconv.FormatFloat(number+0, 'g', -1, 64) // -0 + 0 is 0
}
