package compat

import (
	"errors"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/argdigest"
	"github.com/tripseal/tripseal/internal/hostile"
)

// digests maps the name of a peer to a function. The function digests arguments in the same way as
// this peer does.
var digests = map[string]func(arguments []byte) ([]byte, error){
	"python": func(arguments []byte) ([]byte, error) {
		return new(pythonFormat).Digest(&tripseal.Binding{Arguments: arguments})
	},
	"atd": func(arguments []byte) ([]byte, error) {
		sum, err := ATDFingerprint(arguments, true)
		return sum[:], err
	},
	"ruby": func(arguments []byte) ([]byte, error) {
		return new(rubyFormat).Digest(&tripseal.Binding{Arguments: arguments})
	},
}

func TestHostileArgumentsBuyFourTimesTheirLengthAtMost(t *testing.T) {
	for peer, digest := range digests {
		for _, size := range []int{1_000, 20_000, 1 << 17} {
			for _, text := range hostile.Texts(size) {
				raw := []byte(text.JSON)
				var err error
				used := hostile.Allocated(func() { _, err = digest(raw) })
				if err != nil {
					t.Errorf("%s, %s: %v", peer, text.Name, err)
				}
				if may := hostile.May(text.JSON); used > may {
					t.Errorf("%s, %s: %d bytes of text, %d allocated, %d allowed", peer, text.Name, len(raw), used, may)
				}
			}
		}
	}
}

// TestNumbersBeyondADoubleBuyNoMore checks how much memory a digest takes for numbers that are too
// large for a double. The Python digest reads such a number as infinity. The ATD and Ruby digests
// refuse it.
func TestNumbersBeyondADoubleBuyNoMore(t *testing.T) {
	for _, number := range []string{"1e999", "-1e999", "9e308"} {
		text := "[" + strings.Repeat(number+",", 1<<17/len(number)) + "0]"
		for peer, digest := range digests {
			used := hostile.Allocated(func() { digest([]byte(text)) })
			if may := hostile.May(text); used > may {
				t.Errorf("%s, %s: %d bytes of text, %d allocated, %d allowed", peer, number, len(text), used, may)
			}
		}
	}
}

// TestANameThatIsNotUnicodeIsRefused tries names with half a surrogate pair. The package
// encoding/json reads all such names as the same name, and keeps only the value of the last one. So
// the value that a handler gets would depend on the order of the names.
func TestANameThatIsNotUnicodeIsRefused(t *testing.T) {
	for peer, digest := range digests {
		for _, text := range []string{
			`{"\ud801":1000000,"\ud800":1}`, `{"\ud800":1,"\ud801":1000000}`, `{"\ud800":1}`, `{"a":[{"x\udc00":1}]}`, "{\"\ufffd\":1,\"\\ud800\":2}",
		} {
			_, err := digest([]byte(text))
			var refused *argdigest.Error
			if !errors.As(err, &refused) || refused.Offset < 0 {
				t.Errorf("%s: %s: %v", peer, text, err)
			}
		}
	}
	if _, err := digests["python"]([]byte(`{"a":"\ud800"}`)); err != nil {
		t.Errorf("half a surrogate pair in a value: %v", err)
	}
}
