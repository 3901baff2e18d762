package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/tripseal/tripseal"
)

// exchange is one random case: the peer and we make a token with the same state for the same
// request. Each must open what the other made, and refuse it changed or with another request.
type exchange struct {
	request, wrong job                                         // a request and another one, as the peer gets them
	seal           func() (token string, err error)            // makes our token
	open           func(token string, wrong bool) (any, error) // opens the peer's token for one of the requests
	state          any                                         // what both tokens hold, as JSON decodes it
	prefix         string                                      // what every token begins with
	unbound        bool                                        // if true, tokens open here for every request
	alike          func(rejected string, err error) bool       // whether both may refuse to make a token; nil means never
}

// job is what a peer is asked to do.
type job map[string]any

func (j job) with(name string, value any) job {
	other := maps.Clone(j)
	other[name] = value
	return other
}

func (e *exchange) play(p *peer, r *random, rep *report) error {
	theirs, err := p.ask(e.request.with("op", "mint"))
	if err != nil {
		return err
	}
	ours, err := e.seal()
	if theirs.Rejected != "" || err != nil {
		if e.alike == nil || !e.alike(theirs.Rejected, err) {
			return fmt.Errorf("the peer makes a token: %q, we: %v", theirs.Rejected, err)
		}
		rep.refused, rep.refuse = rep.refused+1, rep.refuse+1
		return nil
	}

	// Let the peer open our token.
	opening := e.request.with("op", "open").with("token", ours)
	a, err := p.ask(opening)
	if err != nil {
		return err
	}
	var state any
	if err := json.Unmarshal(a.State, &state); err != nil || a.Rejected != "" || !reflect.DeepEqual(state, e.state) {
		return fmt.Errorf("ours: %q opens as %s, rejected as %q, want %v", ours, a.State, a.Rejected, e.state)
	}
	rep.ours++
	changed := opening.with("token", r.change(ours, e.prefix))
	for _, bad := range []job{changed, e.wrong.with("op", "open").with("token", ours)} {
		if a, err := p.ask(bad); err != nil || a.Rejected == "" {
			return fmt.Errorf("the peer accepts what it must not: %v, %v, %v", bad, a, err)
		}
		rep.refused++
	}

	// Open the peer's token here.
	if state, err = e.open(theirs.Token, false); err != nil || !reflect.DeepEqual(state, e.state) {
		return fmt.Errorf("theirs: %q opens as %v, %v, want %v", theirs.Token, state, err, e.state)
	}
	rep.theirs++
	if _, err := e.open(r.change(theirs.Token, e.prefix), false); err == nil {
		return errors.New("we accept a changed token")
	}
	rep.refuse++
	if e.unbound {
		return nil
	}
	if _, err := e.open(theirs.Token, true); err == nil {
		return errors.New("we accept a token of another request")
	}
	rep.refuse++
	return nil
}

// sealWith and openWith use a format as a boundary does: they put a digest of the arguments into the
// token, and compare that digest with the digest of the arguments in the binding.

func sealWith(format tripseal.Format, binding tripseal.Binding, state string) (token string, err error) {
	now := time.Now().UnixMilli()
	claims := tripseal.Claims{Issued: now, Expires: now + 600_000, State: state, HasState: true}
	if claims.Arguments, err = format.Digest(&binding); err != nil {
		return "", err
	}
	return format.Seal(context.Background(), &binding, &claims)
}

func openWith(format tripseal.Format, binding tripseal.Binding, token string) (state string, err error) {
	claims, err := format.Open(context.Background(), &binding, token)
	if err != nil {
		return "", err
	}
	digest, err := format.Digest(&binding)
	if err == nil && !bytes.Equal(digest, claims.Arguments) {
		err = errors.New("sealed for other arguments")
	}
	return claims.State, err
}
