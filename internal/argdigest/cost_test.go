package argdigest

import (
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal/internal/hostile"
)

func TestHostileTextsBuyFourTimesTheirLengthAtMost(t *testing.T) {
	for _, size := range []int{100, 10_000, 100_000, 1 << 20} {
		for _, text := range append(hostile.Texts(size), hostile.Text{Name: "one long number", JSON: strings.Repeat("1", size)}) {
			raw := []byte(text.JSON)
			var sum [Size]byte
			var err error
			used := hostile.Allocated(func() { sum, err = Sum(raw) })
			if err != nil {
				t.Errorf("%s: %v", text.Name, err)
				continue
			}
			if may := hostile.May(text.JSON); used > may {
				t.Errorf("%s: %d bytes of text, %d allocated, %d allowed", text.Name, len(raw), used, may)
			}
			if want, ok := referenceSum(raw); !ok || sum != want {
				t.Errorf("%s: the reference differs", text.Name)
			}
		}
	}
}
