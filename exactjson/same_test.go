package exactjson_test

import (
	"testing"

	"github.com/tripseal/tripseal/exactjson"
)

func TestTextsAreTheSameIfTheyMeanTheSame(t *testing.T) {
	for _, pair := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, ` { "b": 2.0, "\u0061": 1 }`, true}, {``, `{}`, true}, {`null`, `{}`, true}, {`{"a":1,"a":1}`, `{"a":1,"a":1}`, true}, {`x`, `x`, true},
		{`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, `{"A":1}`, false}, {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1,"a":1}`, `{ "a":1,"a":1}`, false}, {`x`, `y`, false}, {``, `[]`, false},
	} {
		if got := exactjson.Same([]byte(pair.a), []byte(pair.b)); got != pair.want {
			t.Errorf("%s and %s: %t", pair.a, pair.b, got)
		}
	}
}
