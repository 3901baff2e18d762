package compat

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
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

// allocated returns how many bytes f allocates in total. No other goroutine may allocate while f runs.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// hostileArguments returns texts of about size bytes that become longer when a peer writes them, or need many notes.
func hostileArguments(size int) map[string]string {
	list := func(element string) string {
		return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
	}
	text := func(s string) string { return `"` + strings.Repeat(s, size/len(s)) + `"` }
	var reversed strings.Builder
	for i := size / 12; i > 0; i-- {
		fmt.Fprintf(&reversed, `"k%06d":[],`, i)
	}
	return map[string]string{
		"zeros": list("0"), "numbers that grow": list("1e15"), "fractions": list("1." + strings.Repeat("1", 798)), "integers": list(strings.Repeat("7", 33)),
		"empty strings": list(`""`), "empty arrays": list("[]"), "unsorted objects": list(`{"a":0,"":0}`), "members reversed": "{" + reversed.String() + `"":0}`,
		"DEL": text("\x7f"), "zeros in escapes": text(`\u0000`), "accents": text("é"), "emoji": text("😀"), "pairs": text(`\ud83d\ude00`), "quotes": text(`\"`),
	}
}

func TestHostileArgumentsBuyFourTimesTheirLengthAtMost(t *testing.T) {
	for peer, digest := range digests {
		for _, size := range []int{1_000, 20_000, 1 << 17} {
			for name, text := range hostileArguments(size) {
				raw := []byte(text)
				var err error
				used := allocated(func() { _, err = digest(raw) })
				if err != nil {
					t.Errorf("%s, %s: %v", peer, name, err)
				}
				if used > 4*len(raw)+64<<10 {
					t.Errorf("%s, %s: %d bytes of text, %d allocated", peer, name, len(raw), used)
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
			if used := allocated(func() { digest([]byte(text)) }); used > 4*len(text)+64<<10 {
				t.Errorf("%s, %s: %d bytes of text, %d allocated", peer, number, len(text), used)
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
			var refused *strictjson.Error
			if !errors.As(err, &refused) || refused.Offset < 0 {
				t.Errorf("%s: %s: %v", peer, text, err)
			}
		}
	}
	if _, err := digests["python"]([]byte(`{"a":"\ud800"}`)); err != nil {
		t.Errorf("half a surrogate pair in a value: %v", err)
	}
}
