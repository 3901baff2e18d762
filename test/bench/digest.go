package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"

	"github.com/tripseal/tripseal"
)

type argumentText struct{ name, json string }

// argumentTexts returns two JSON texts that have the same value. Each has about 300 bytes.
func argumentTexts() []argumentText {
	return []argumentText{
		{"canonical text of 300 B", `{"branch":"main","count":3,"dir":"/var/lib/service/releases/current","dry_run":false,` +
			`"labels":["blue","green","canary"],"limits":{"cpu":2,"memory":4096},"message":"Deploy the new release to every region ` +
			`that has passed its checks","name":"frontend","region":"eu-west","replicas":12,"tags":["a","b"]}`},
		{"the same with members and spellings in disorder", `{ "tags":["a","b"], "replicas":12.0, "region":"eu-west", "name":"front\u0065nd", ` +
			`"message":"Deploy the new release to every region that has passed its checks", "limits":{"memory":4096,"cpu":2}, ` +
			`"labels":["blue","green","canary"], "dry_run":false, "dir":"/var/lib/service/releases/current", "count":3, "branch":"main"}`},
	}
}

func digestContenders(text string) []contender {
	raw := []byte(text)
	return []contender{
		{"SHA-256 and json.Valid of the bytes", 0, func() {
			if !json.Valid(raw) {
				panic("not JSON")
			}
			sha256.Sum256(raw)
		}},
		{"tripseal", 0, func() {
			b := tripseal.Binding{Arguments: raw}
			_, err := b.ArgumentsDigest()
			check(err)
		}},
		{"go-json-experiment Canonicalize and SHA-256", 0, func() {
			value := jsontext.Value(append([]byte(nil), raw...))
			check(value.Canonicalize())
			sha256.Sum256(value)
		}},
		{"gowebpki/jcs and SHA-256", 0, func() {
			canonical, err := jcs.Transform(raw)
			check(err)
			sha256.Sum256(canonical)
		}},
	}
}

// objectOf returns an object with these members, in this order.
func objectOf(members []int) []byte {
	text := []byte{'{'}
	for _, i := range members {
		text = fmt.Appendf(text, `"member_%05d":%d,`, i, i)
	}
	text[len(text)-1] = '}'
	return text
}
