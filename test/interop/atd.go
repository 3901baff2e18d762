package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tripseal/tripseal/compat/atd"
)

// atdCase is one job for the ATD peer: make a cursor for a request, or open one.
type atdCase struct {
	Op        string  `json:"op"`
	Key       string  `json:"key"`
	Tool      string  `json:"tool"`
	Caller    *string `json:"caller"`
	Arguments string  `json:"arguments"` // the arguments as JSON
	Page      uint32  `json:"page"`
	State     string  `json:"state"` // the state, in hexadecimal
	Token     string  `json:"token"`
}

// playATD exchanges n cursors with the peer. The peer makes a new session for each key, so
// playATD makes a new issuer for each key too.
func playATD(p *peer, r *random, n int) (rep report, err error) {
	var (
		issuer *atd.Issuer
		key    string
	)
	for i := range n {
		if i%50 == 0 {
			secret := r.bytes(32)
			key = hex.EncodeToString(secret)
			a, err := p.ask(atdCase{Op: "session", Key: key})
			if err != nil {
				return rep, err
			}
			session, err := hex.DecodeString(a.Session)
			if err != nil {
				return rep, err
			}
			if issuer, err = atd.NewIssuer(secret, atd.Options{Session: session}); err != nil {
				return rep, err
			}
		}
		arguments := r.object(3)
		request := atd.Request{Tool: r.text(8), Caller: r.oneOf("", r.text(6)), Arguments: []byte(r.spell(arguments))}
		c := atdCase{Key: key, Tool: request.Tool, Arguments: r.spell(arguments)}
		if request.Caller != "" {
			c.Caller = &request.Caller
		}
		page := atd.Page{Index: r.Uint32() >> r.IntN(32), State: r.bytes(r.IntN(100))}
		if err := atdOne(p, r, issuer, request, page, c, &rep); err != nil {
			return rep, fmt.Errorf("%w; the case is %+v", err, c)
		}
	}
	return rep, nil
}

func atdOne(p *peer, r *random, issuer *atd.Issuer, request atd.Request, page atd.Page, c atdCase, rep *report) error {
	c.Op, c.Page, c.State = "mint", page.Index, hex.EncodeToString(page.State)
	a, err := p.ask(c)
	if err != nil {
		return err
	}
	cursor, err := issuer.Issue(request, page)
	if a.Rejected != "" || err != nil {
		// If one side refuses to issue a cursor, the other side must refuse too. Both sides
		// refuse a cursor that is too long, and arguments with a number too large for a 64-bit
		// float.
		if a.Rejected == "" || err == nil {
			return fmt.Errorf("the peer issues: %q, we: %v", a.Rejected, err)
		}
		if errors.Is(err, atd.ErrTooLarge) != (a.Rejected == "TooLarge") {
			return fmt.Errorf("the peer fails with %q, we with %v", a.Rejected, err)
		}
		rep.refused, rep.refuse = rep.refused+1, rep.refuse+1
		return nil
	}

	// Open the peer's cursor here.
	got, err := issuer.Open(request, a.Token)
	if err != nil || got.Index != page.Index || string(got.State) != string(page.State) {
		return fmt.Errorf("theirs: %q opens as %v, %v", a.Token, got, err)
	}
	rep.theirs++
	wrong := request
	wrong.Tool += "x"
	if _, err := issuer.Open(request, r.change(a.Token, "")); err == nil {
		return errors.New("we accept a changed cursor")
	}
	if _, err := issuer.Open(wrong, a.Token); !errors.Is(err, atd.ErrMismatch) {
		return fmt.Errorf("another tool: %v", err)
	}
	rep.refuse += 2

	// Let the peer open our cursor.
	c.Op, c.Token = "open", cursor
	if a, err = p.ask(c); err != nil {
		return err
	}
	want, _ := json.Marshal(fmt.Sprintf("%d %x", page.Index, page.State))
	if a.Rejected != "" || string(a.State) != string(want) {
		return fmt.Errorf("ours: %q opens as %s, rejected as %q, want %s", cursor, a.State, a.Rejected, want)
	}
	rep.ours++
	changed, other := c, c
	changed.Token = r.change(cursor, "")
	other.Tool += "x"
	for _, bad := range []atdCase{changed, other} {
		if a, err := p.ask(bad); err != nil || a.Rejected == "" {
			return fmt.Errorf("the peer accepts what it must not: %+v, %v, %v", bad, a, err)
		}
		rep.refused++
	}
	return nil
}
