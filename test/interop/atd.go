package main

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tripseal/tripseal/compat/atd"
)

// atdExchanges returns a function that makes exchanges of cursors. The peer makes a new session for
// each key, so a new issuer goes with each key too.
func atdExchanges() func(*peer, *random) (*exchange, error) {
	var (
		issuer *atd.Issuer
		key    string
		n      int
	)
	return func(p *peer, r *random) (*exchange, error) {
		request := job{"op": "session", "tool": "", "caller": nil, "arguments": "", "page": 0, "state": "", "token": ""}
		if n++; n%50 == 1 {
			secret := r.bytes(32)
			key = hex.EncodeToString(secret)
			a, err := p.ask(request.with("key", key))
			if err != nil {
				return nil, err
			}
			session, err := hex.DecodeString(a.Session)
			if err != nil {
				return nil, err
			}
			if issuer, err = atd.NewIssuer(secret, atd.Options{Session: session}); err != nil {
				return nil, err
			}
		}
		arguments := r.object(3)
		ours := atd.Request{Tool: r.text(8), Caller: r.oneOf("", r.text(6)), Arguments: []byte(r.spell(arguments))}
		page := atd.Page{Index: r.Uint32() >> r.IntN(32), State: r.bytes(r.IntN(100))}
		request["key"], request["tool"], request["arguments"] = key, ours.Tool, r.spell(arguments)
		request["page"], request["state"] = page.Index, hex.EncodeToString(page.State)
		if ours.Caller != "" {
			request["caller"] = ours.Caller
		}
		asState := func(p atd.Page) string { return fmt.Sprintf("%d %x", p.Index, p.State) }
		issuer := issuer
		return &exchange{
			request: request, wrong: request.with("tool", ours.Tool+"x"), state: asState(page),
			seal: func() (string, error) { return issuer.Issue(ours, page) },
			open: func(token string, wrong bool) (any, error) {
				ours := ours
				if wrong {
					ours.Tool += "x"
				}
				page, err := issuer.Open(ours, token)
				return asState(page), err
			},
			// Both refuse a cursor that is too long, and arguments with a number too large for a 64-bit float.
			alike: func(rejected string, err error) bool {
				return rejected != "" && err != nil && errors.Is(err, atd.ErrTooLarge) == (rejected == "TooLarge")
			},
		}, nil
	}
}
