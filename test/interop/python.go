package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

// pythonCase is one job for the Python peer: make a token for a request, or open one.
type pythonCase struct {
	Op        string   `json:"op"`
	Keys      []string `json:"keys"`
	Audience  *string  `json:"audience"`
	Principal *string  `json:"principal"`
	Method    string   `json:"method"`
	Target    string   `json:"target"`
	Arguments string   `json:"arguments"` // the arguments as JSON
	State     string   `json:"state,omitempty"`
	Token     string   `json:"token,omitempty"`
}

func playPython(p *peer, r *random, n int) (rep report, err error) {
	for range n {
		secrets := [][]byte{r.bytes(32 + r.IntN(33))}
		if r.IntN(3) == 0 {
			secrets = append(secrets, r.bytes(32))
		}
		format, err := compat.Python(secrets, compat.PythonOptions{})
		if err != nil {
			return rep, err
		}
		arguments := r.object(3)
		binding := tripseal.Binding{
			Method: r.oneOf("tools/call", "prompts/get", "resources/read"), Target: r.name(), Arguments: []byte(r.spell(arguments)),
		}
		c := pythonCase{Method: binding.Method, Target: binding.Target, Arguments: r.spell(arguments)}
		for _, secret := range secrets {
			c.Keys = append(c.Keys, hex.EncodeToString(secret))
		}
		if r.IntN(2) == 0 {
			binding.Audience = r.name()
			c.Audience = &binding.Audience
		}
		if r.IntN(2) == 0 {
			binding.User = r.name()
			c.Principal = &binding.User
		}
		if err := pythonOne(p, r, format, binding, c, &rep); err != nil {
			return rep, fmt.Errorf("%w; the case is %+v", err, c)
		}
	}
	return rep, nil
}

func pythonOne(p *peer, r *random, format tripseal.Format, binding tripseal.Binding, c pythonCase, rep *report) error {
	ctx := context.Background()
	state, now := r.text(200), time.Now().UnixMilli()
	token, err := seal(ctx, format, binding, tripseal.Claims{Issued: now, Expires: now + 600_000, State: state, HasState: true})
	if err != nil {
		return err
	}

	// Let the peer open our token.
	c.Op, c.Token = "open", token
	if err := opensAs(p, c, state); err != nil {
		return fmt.Errorf("ours: %w", err)
	}
	rep.ours++
	changed := c
	changed.Token = r.change(token, format.Prefix())
	other := c
	switch r.IntN(4) {
	case 0:
		other.Target += "x"
	case 1:
		name := r.name() + "x"
		other.Audience = &name
	case 2:
		name := r.name() + "x"
		other.Principal = &name
	case 3:
		other.Method = map[string]string{"tools/call": "prompts/get", "prompts/get": "tools/call", "resources/read": "tools/call"}[c.Method]
	}
	for _, bad := range []pythonCase{changed, other} {
		if a, err := p.ask(bad); err != nil || a.Rejected == "" {
			return fmt.Errorf("the peer accepts what it must not: %+v, %v, %v", bad, a, err)
		}
		rep.refused++
	}

	// Open a token that the peer makes.
	c.Op, c.State = "mint", state
	a, err := p.ask(c)
	if err != nil {
		return err
	}
	opened, err := open(ctx, format, binding, a.Token)
	if err != nil || opened.State != state {
		return fmt.Errorf("theirs: %q opens as %q, %v, want %q", a.Token, opened.State, err, state)
	}
	rep.theirs++
	wrong := binding
	wrong.Target += "x"
	for _, bad := range []struct {
		binding tripseal.Binding
		token   string
	}{{binding, r.change(a.Token, format.Prefix())}, {wrong, a.Token}} {
		if _, err := open(ctx, format, bad.binding, bad.token); err == nil {
			return fmt.Errorf("we accept what we must not: %+v", bad)
		}
		rep.refuse++
	}
	return nil
}

// opensAs lets the peer open a token. It returns an error if the peer refuses, or if the
// state in the token is not the wanted text.
func opensAs(p *peer, question any, want string) error {
	a, err := p.ask(question)
	if err != nil {
		return err
	}
	var got string
	if err := json.Unmarshal(a.State, &got); err != nil || a.Rejected != "" || got != want {
		return fmt.Errorf("opened as %q, %v, rejected as %q, want %q", got, err, a.Rejected, want)
	}
	return nil
}
