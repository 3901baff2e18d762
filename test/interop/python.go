package main

import (
	"encoding/hex"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

func pythonExchange(_ *peer, r *random) (*exchange, error) {
	secrets := [][]byte{r.bytes(32 + r.IntN(33))}
	if r.IntN(3) == 0 {
		secrets = append(secrets, r.bytes(32))
	}
	format, err := compat.Python(secrets, compat.PythonOptions{})
	if err != nil {
		return nil, err
	}
	arguments, state := r.object(3), r.text(200)
	binding := tripseal.Binding{
		Method: r.oneOf("tools/call", "prompts/get", "resources/read"), Target: r.name(), Arguments: []byte(r.spell(arguments)),
	}
	request := job{
		"method": binding.Method, "target": binding.Target, "arguments": r.spell(arguments), "state": state,
		"audience": nil, "principal": nil,
	}
	var keys []string
	for _, secret := range secrets {
		keys = append(keys, hex.EncodeToString(secret))
	}
	request["keys"] = keys
	if r.IntN(2) == 0 {
		binding.Audience = r.name()
		request["audience"] = binding.Audience
	}
	if r.IntN(2) == 0 {
		binding.User = r.name()
		request["principal"] = binding.User
	}

	// The other request differs in one thing.
	other := binding
	switch r.IntN(4) {
	case 0:
		other.Target += "x"
	case 1:
		other.Audience = r.name() + "x"
	case 2:
		other.User = r.name() + "x"
	case 3:
		methods := map[string]string{"tools/call": "prompts/get", "prompts/get": "tools/call", "resources/read": "tools/call"}
		other.Method = methods[binding.Method]
	}
	wrong := request.with("target", other.Target).with("method", other.Method)
	if other.Audience != "" {
		wrong["audience"] = other.Audience
	}
	if other.User != "" {
		wrong["principal"] = other.User
	}
	return &exchange{
		request: request, wrong: wrong, state: state, prefix: format.Prefix(),
		seal: func() (string, error) { return sealWith(format, binding, state) },
		open: func(token string, asOther bool) (any, error) {
			if asOther {
				return openWith(format, other, token)
			}
			return openWith(format, binding, token)
		},
	}, nil
}
