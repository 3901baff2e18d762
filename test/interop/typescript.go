package main

import (
	"encoding/hex"
	"encoding/json"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

// typeScriptExchange makes states that are JSON. They are compared as JavaScript does, where all
// numbers are 64-bit floats.
func typeScriptExchange(_ *peer, r *random) (*exchange, error) {
	key, state := r.bytes(32+r.IntN(65)), r.spell(r.value(3))
	binding, options := tripseal.Binding{Method: "tools/call"}, compat.TypeScriptOptions{}
	request := job{"key": hex.EncodeToString(key), "bind": nil, "payload": state}
	bound := r.IntN(2) == 0
	if bound {
		bind := func(b *tripseal.Binding) (string, error) { return b.Method + " " + b.User, nil }
		binding.User = r.name()
		options.Bind = bind
		request["bind"], _ = bind(&binding)
	}
	format, err := compat.TypeScript(key, options)
	if err != nil {
		return nil, err
	}
	e := &exchange{
		request: request, wrong: request.with("bind", "tools/call other"), prefix: format.Prefix(), unbound: !bound,
		seal: func() (string, error) { return sealWith(format, binding, state) },
		open: func(token string, wrong bool) (opened any, err error) {
			binding := binding
			if wrong {
				binding.User += "x"
			}
			text, err := openWith(format, binding, token)
			if err == nil {
				err = json.Unmarshal([]byte(text), &opened)
			}
			return opened, err
		},
	}
	return e, json.Unmarshal([]byte(state), &e.state)
}
