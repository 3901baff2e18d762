package wire

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
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
	idle      chan struct{} // closed when no request waits any more; nil if nobody asked for that
}

type request struct {
	id        string
	bytes     int
	exchange  *Exchange // nil before the message is opened, and after the request is cancelled
	cancelled bool
}

// reserve marks an id as in use. The parameter bytes is the length of the request's message. reserve returns an error
// if a similar id is in use or a limit is reached.
func (p *pending) reserve(id string, bytes int) error {
	if len(id) > maxID {
		return errInUse
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := likeness(id)
	switch {
	case p.requests[key] != nil:
		return errInUse
	case p.ended || p.waiting == maxPending || p.bytes+bytes > maxBytes:
		return errFull
	}
	if p.requests == nil {
		p.requests = map[string]*request{}
	}
	p.requests[key] = &request{id: strings.Clone(id), bytes: bytes} // a clone, or the id keeps the message in memory
	p.waiting++
	p.bytes += bytes
	return nil
}

// release frees a reserved id, because its request is not forwarded to the server.
func (p *pending) release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(id)
}

// setExchange stores the exchange of a request whose id was reserved. It returns false if the id is not reserved, or if
// the server gives no more answers. In these cases the carrier must not forward the request.
func (p *pending) setExchange(e *Exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(e.ID)]
	if p.ended || r == nil || r.id != e.ID {
		return false
	}
	r.exchange = e
	return true
}

// cancel discards the exchange of a request that the client has cancelled. The id stays in use until the server
// answers, or until maxCancelled later requests are cancelled too, because most servers never answer. If the id were
// freed at once, a later request with the same id could get the answer to the cancelled one.
func (p *pending) cancel(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(id)]
	if r == nil || sameID(r.id) != sameID(id) || r.exchange == nil {
		return
	}
	p.leave(r)
	r.exchange, r.cancelled = nil, true
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
	if r.exchange != nil {
		r.exchange.forgetMark()
	}
	if p.waiting == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// whenIdle returns a channel that is closed when no request waits for an answer.
func (p *pending) whenIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 {
		idle := make(chan struct{})
		close(idle)
		return idle
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	return p.idle
}

// take frees the id of a request that gets its answer now, and returns the exchange of this request. It returns nil if
// there is no such request, or if the client has cancelled the request.
func (p *pending) take(id string) *Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(id)]
	if r == nil || sameID(r.id) != sameID(id) || r.exchange == nil && !r.cancelled {
		return nil
	}
	p.remove(id)
	return r.exchange
}

// end returns the exchanges that the server has not answered and will not answer. After this call, reserve returns an
// error for every request, and setExchange returns false.
func (p *pending) end() (left []*Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, r := range p.requests {
		if r.exchange != nil {
			left = append(left, r.exchange)
			p.remove(r.id)
		}
	}
	return left
}

func (p *pending) remove(id string) {
	key := likeness(id)
	switch r := p.requests[key]; {
	case r == nil || r.cancelled:
	default:
		p.leave(r)
	}
	delete(p.requests, key)
}

// likeness returns the same text for all ids that a server could confuse. A server may read a number as a float64, or a
// string of digits as a number. The given id is JSON text.
func likeness(id string) string {
	text, digits := id, id
	if strings.HasPrefix(id, `"`) {
		json.Unmarshal([]byte(id), &text) // no error: the id was already read as JSON
		digits = strings.ReplaceAll(strings.TrimSpace(text), "_", "")
	}
	number, err := strconv.ParseFloat(digits, 64)
	if text != id && strings.Trim(digits, "+-.0123456789") != "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		return "text " + text
	}
	return "number " + strconv.FormatFloat(number+0, 'g', -1, 64) // -0 + 0 is 0
}
