package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

// typeScriptCase is one job for the TypeScript peer: make a token for a request, or open one.
type typeScriptCase struct {
	Op      string  `json:"op"`
	Key     string  `json:"key"`
	Bind    *string `json:"bind"`
	Payload string  `json:"payload,omitempty"` // the payload as JSON
	Token   string  `json:"token,omitempty"`
}

func playTypeScript(p *peer, r *random, n int) (rep report, err error) {
	for range n {
		key := r.bytes(32 + r.IntN(65))
		c := typeScriptCase{Key: hex.EncodeToString(key)}
		options := compat.TypeScriptOptions{}
		if r.IntN(2) == 0 {
			options.Bind = func(b *tripseal.Binding) (string, error) { return b.Method + " " + b.User, nil }
			text := "tools/call " + r.name()
			c.Bind = &text
		}
		format, err := compat.TypeScript(key, options)
		if err != nil {
			return rep, err
		}
		if err := typeScriptOne(p, r, format, c, &rep); err != nil {
			return rep, fmt.Errorf("%w; the case is %+v", err, c)
		}
	}
	return rep, nil
}

func typeScriptOne(p *peer, r *random, format tripseal.Format, c typeScriptCase, rep *report) error {
	ctx := context.Background()
	binding := tripseal.Binding{Method: "tools/call"}
	if c.Bind != nil {
		binding.User = (*c.Bind)[len("tools/call "):]
	}
	state, now := r.spell(r.value(3)), time.Now().UnixMilli()
	token, err := seal(ctx, format, binding, tripseal.Claims{Issued: now, Expires: now + 600_000, State: state, HasState: true})
	if err != nil {
		return err
	}

	// Let the peer open our token.
	c.Op, c.Token = "open", token
	a, err := p.ask(c)
	if err != nil {
		return err
	}
	if a.Rejected != "" || !sameJSON(string(a.State), state) {
		return fmt.Errorf("ours: %s opens as %s, rejected as %q, want %s", token, a.State, a.Rejected, state)
	}
	rep.ours++
	changed, other := c, c
	changed.Token = r.change(token, format.Prefix())
	text := "tools/call other"
	other.Bind = &text
	for _, bad := range []typeScriptCase{changed, other} {
		if a, err := p.ask(bad); err != nil || a.Rejected == "" {
			return fmt.Errorf("the peer accepts what it must not: %+v, %v, %v", bad, a, err)
		}
		rep.refused++
	}

	// Open the peer's token here.
	c.Op, c.Payload = "mint", state
	if a, err = p.ask(c); err != nil {
		return err
	}
	opened, err := open(ctx, format, binding, a.Token)
	if err != nil || !sameJSON(opened.State, state) {
		return fmt.Errorf("theirs: %q opens as %s, %v, want %s", a.Token, opened.State, err, state)
	}
	rep.theirs++
	if _, err := open(ctx, format, binding, r.change(a.Token, format.Prefix())); err == nil {
		return fmt.Errorf("we accept a changed token")
	}
	rep.refuse++
	if c.Bind != nil {
		binding.User += "x"
		if _, err := open(ctx, format, binding, a.Token); err == nil {
			return fmt.Errorf("we accept another user's token")
		}
		rep.refuse++
	}
	return nil
}

// sameJSON reports whether two JSON texts have the same value in JavaScript, where all numbers
// are 64-bit floats.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
