package parts

import (
	"encoding/json"
	"math"

	"github.com/tripseal/tripseal"
)

// CheckWritable returns an error if a value cannot be written as JSON. Call it with each question
// of a handler, before you seal the question. An SDK writes the result with the question after the
// adapter has returned. If the SDK cannot write the result, it may panic or leave the client
// without an answer. The error's text is safe to log. CheckWritable is fast: it checks most values
// without writing them.
func CheckWritable(value any) error {
	if isPlain(value, 0) {
		return nil
	}
	return tripseal.Guard(func() error {
		_, err := json.Marshal(value)
		return err
	})
}

// maxPlainDepth is the depth at which isPlain gives up and returns false. Without this
// limit, isPlain would never return for a map that contains itself.
const maxPlainDepth = 100

// isPlain reports whether a value clearly can be written as JSON: the value, and everything
// in it, is of a simple type. If isPlain returns false, CheckWritable must try to write the
// value.
func isPlain(value any, depth int) bool {
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
			if !isPlain(member, depth+1) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !isPlain(item, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
