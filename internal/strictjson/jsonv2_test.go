//go:build goexperiment.jsonv2

package strictjson

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
)

func init() {
	handlers = append(handlers, handlersWith("encoding/json/v2", func(text []byte, v any) error {
		return json.Unmarshal(text, v)
	})...)
	handlers = append(handlers, handlersWith("encoding/json/v2 with duplicate names", func(text []byte, v any) error {
		return json.Unmarshal(text, v, jsontext.AllowDuplicateNames(true))
	})...)
}
