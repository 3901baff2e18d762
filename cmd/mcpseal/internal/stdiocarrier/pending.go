package stdiocarrier

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpseal/mcpseal/proxy"
)

// The limits of the requests that wait for an answer.
const (
	maxPending   = 1 << 10
	maxBytes     = 64 << 20 // of their messages
	maxCancelled = 1 << 16  // ids of cancelled requests without an answer
	maxID        = 256      // bytes of an id
)

var (
	errInUse = errors.New("the id of a request is too long, or like the id of one without an answer")
	errFull  = errors.New("too many requests wait for an answer")
)

// pending has the requests that the server has not answered. It is safe for concurrent use.
//
// An answer belongs to the request with the same id, though a string may be written with
// other escapes. But a server may answer 1.0 as 1, or "1" as 1. If both were in use, the state of one request could be sealed
// for the other. So an id that any server could take for another one must wait for it.
type pending struct {
	mu        sync.Mutex
	requests  map[string]*request // by the likeness of their ids
	waiting   int                 // the requests that are not cancelled
	bytes     int                 // of their messages
	cancelled int
	ended     bool
}

type request struct {
	id        string
	bytes     int
	exchange  *proxy.Exchange // nil until the message has been opened, and once it is cancelled
	cancelled bool
}

// reserve takes an id into use.
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
	p.requests[key] = &request{id: strings.Clone(id), bytes: bytes} // a clone, because id may be part of the whole message
	p.waiting++
	p.bytes += bytes
	return nil
}

// release gives back an id whose request the server does not get.
func (p *pending) release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(id)
}

// forward records that the server gets the request of an id that was reserved. It returns
// false if the server gives no answers any more.
func (p *pending) forward(e *proxy.Exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(e.ID)]
	if p.ended || r == nil || r.id != e.ID {
		return false
	}
	r.exchange = e
	return true
}

// cancel lets go of a request that the client has cancelled. Its id stays in use until the
// server answers, which it may never do: a later request with this id could get that answer.
func (p *pending) cancel(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(id)]
	if r == nil || proxy.ID(r.id) != proxy.ID(id) || r.exchange == nil || p.cancelled == maxCancelled {
		return
	}
	r.exchange, r.cancelled = nil, true
	p.waiting--
	p.bytes -= r.bytes
	p.cancelled++
}

// answered returns the exchange that an answer belongs to, and frees the id. It returns nil
// if there is none, or if the client has cancelled the request.
func (p *pending) answered(id string) *proxy.Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests[likeness(id)]
	if r == nil || proxy.ID(r.id) != proxy.ID(id) || r.exchange == nil && !r.cancelled {
		return nil
	}
	p.remove(id)
	return r.exchange
}

// end returns the exchanges that the server will not answer, and lets no more begin.
func (p *pending) end() (left []*proxy.Exchange) {
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
	case r == nil:
	case r.cancelled:
		p.cancelled--
	default:
		p.waiting--
		p.bytes -= r.bytes
	}
	delete(p.requests, key)
}

// likeness returns the same text for all ids that a server could take for one another: by
// reading a number as a float64, or a string of digits as a number.
func likeness(id string) string {
	text, digits := id, id
	if strings.HasPrefix(id, `"`) {
		json.Unmarshal([]byte(id), &text) // it was read as JSON before
		digits = strings.ReplaceAll(strings.TrimSpace(text), "_", "")
	}
	number, err := strconv.ParseFloat(digits, 64)
	if text != id && strings.Trim(digits, "+-.0123456789") != "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		return "text " + text
	}
	return "number " + strconv.FormatFloat(number+0, 'g', -1, 64) // -0 + 0 is 0
}
