package cursor

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/native"
)

// Open returns the page that a cursor leads to: see [Issuer]. Call it for every request
// of a paginated list, also for the first page.
func (c *Cursors) Open(ctx context.Context, request tripseal.Request, cursor string) (Page, error) {
	page := Page{cursors: c, request: request}
	if cursor == "" {
		return page, nil
	}
	start := c.start()
	fail := page.open(ctx, cursor)
	c.report(ctx, OpOpen, start, &request, cursor, fail)
	if fail != nil {
		return Page{}, &RejectError{fail.reason, fail.cause}
	}
	return page, nil
}

// open sets p to the page that a cursor leads to, or returns why the cursor is refused.
func (p *Page) open(ctx context.Context, cursor string) *failure {
	config := &p.cursors.config
	text, ok := strings.CutPrefix(cursor, prefix)
	if !ok {
		return failed(tripseal.ReasonMalformed)
	}
	if len(cursor) > p.cursors.maxCursor() || len(p.request.Arguments) > config.MaxArguments {
		return failed(tripseal.ReasonTooLarge)
	}
	s := native.Borrow()
	defer s.Release()
	var payload []byte
	var reason tripseal.Reason
	cause := guard.Call(func() (err error) {
		payload, err = p.cursors.texts.Open(ctx, s, text)
		switch reason, _ = guard.Find[tripseal.Reason](err); reason {
		case tripseal.ReasonMalformed, tripseal.ReasonUnknownKey, tripseal.ReasonForged:
			return nil
		}
		reason = ""
		return err
	})
	switch {
	case cause != nil:
		return &failure{tripseal.ReasonCodecFailed, cause}
	case reason != "":
		return failed(reason)
	}
	r, head, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
	}
	if fail := p.digestArguments(); fail != nil { // after texts.Open, so that no digest is computed for a forged cursor
		fail.reason = tripseal.ReasonArguments
		return fail
	}
	if fail := p.bind(ctx, r.who == forEverybody); fail != nil {
		return fail
	}
	if reason := boundTo(head, &p.binding); reason != "" {
		if bytes.Contains(p.request.Arguments, []byte(cursor)) { // the server left the cursor in Arguments, so no cursor of this server can ever open
			return failedBecause(reason, "%s", errAmongArguments)
		}
		return failed(reason)
	}
	if len(r.position) > config.MaxPosition {
		return failed(tripseal.ReasonTooLarge)
	}
	// Expiry is checked last, so that only somebody who may use the cursor learns that it expired.
	p.opened = time.Now().UnixMilli()
	if reason := r.inTime(p.opened); reason != "" {
		return failed(reason)
	}
	p.number, p.position = int(r.number), append(make([]byte, 0, len(r.position)), r.position...)
	return nil
}

// maxCursor returns the greatest length of a cursor. Open refuses a longer cursor without
// decoding it. No codec makes a longer one.
func (c *Cursors) maxCursor() int { return max(4096, 4*c.config.MaxPosition) }

// inTime returns why the record's times are refused, or "" if they are accepted.
func (r *record) inTime(now int64) tripseal.Reason {
	if !(r.issued <= now+clockSkew.Milliseconds()) {
		return tripseal.ReasonFromTheFuture
	}
	if !(now < r.issued+r.lifetime) {
		return tripseal.ReasonExpired
	}
	return ""
}
