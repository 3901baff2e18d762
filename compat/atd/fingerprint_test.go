package atd

import (
	"testing"

	"github.com/mcpseal/mcpseal/internal/hostile"
)

func TestHostileArgumentsBuyFourTimesTheirLengthAtMost(t *testing.T) {
	for _, size := range []int{1_000, 20_000, 1 << 17} {
		for _, text := range hostile.Texts(size) {
			raw := []byte(text.JSON)
			var err error
			used := hostile.Allocated(func() { _, err = fingerprint(raw, plainExponents) })
			if err != nil {
				t.Errorf("%s: %v", text.Name, err)
			}
			if may := hostile.May(text.JSON); used > may {
				t.Errorf("%s: %d bytes of text, %d allocated, %d allowed", text.Name, len(raw), used, may)
			}
		}
	}
}
