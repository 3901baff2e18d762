//go:build goexperiment.jsonv2

package argdigest

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
)

func init() {
	readers = append(readers, readersWith("encoding/json/v2", func(text []byte, v any) error {
		return json.Unmarshal(text, v)
	})...)
	readers = append(readers, readersWith("encoding/json/v2 with duplicate names", func(text []byte, v any) error {
		return json.Unmarshal(text, v, jsontext.AllowDuplicateNames(true))
	})...)
}
