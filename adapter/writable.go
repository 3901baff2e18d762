package adapter

import (
	"encoding/json"
	"math"

	"github.com/mcpseal/mcpseal"
)

// CheckWritable returns an error if a value cannot be written as JSON. Call it for what a
// handler asks, before you seal it: an SDK writes results after the adapter has returned,
// and may then panic, or leave the client without an answer. The error's text is safe to
// log. Most values are checked without writing them.
func CheckWritable(value any) error {
	if plain(value, 0) {
		return nil
	}
	return mcpseal.Guard(func() error {
		_, err := json.Marshal(value)
		return err
	})
}

// maxPlainDepth is how deep plain looks. A map that contains itself has no end.
const maxPlainDepth = 100

// plain reports whether a value is of types that can always be written as JSON.
func plain(value any, depth int) bool {
	if depth > maxPlainDepth {
		return false
	}
	switch v := value.(type) {
	case nil, bool, string, int, int64, uint64, []string, map[string]string:
		return true
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case map[string]any:
		for _, member := range v {
			if !plain(member, depth+1) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !plain(item, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
