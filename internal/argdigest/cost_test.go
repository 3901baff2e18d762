package argdigest

import (
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal/internal/hostile"
)

func TestHostileTextsBuyFourTimesTheirLengthAtMost(t *testing.T) {
	for _, size := range []int{1_000, 20_000, 1 << 17} {
		texts := append(hostile.Texts(size), hostile.Text{Name: "one long number", JSON: strings.Repeat("1", size)})
		for _, text := range texts {
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

func TestRefusedTextsBuyNoMore(t *testing.T) {
	const size = 1 << 17
	texts := []hostile.Text{{Name: "over the limit", JSON: `"` + strings.Repeat("x", MaxText) + `"`}}
	for _, text := range hostile.Texts(size) {
		texts = append(texts, hostile.Text{Name: text.Name, JSON: text.JSON + "x"})
	}
	for _, text := range texts {
		raw := []byte(text.JSON)
		var err error
		used := hostile.Allocated(func() { _, err = Sum(raw) })
		if may := min(hostile.May(text.JSON), 5*size); err == nil || used > may {
			t.Errorf("%s: %d allocated, %d allowed, %v", text.Name, used, may, err)
		}
	}
}
