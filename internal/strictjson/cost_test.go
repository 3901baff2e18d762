package strictjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestHostileTextsBuyFourTimesTheirLengthAtMost(t *testing.T) {
	for _, size := range []int{1_000, 20_000, 1 << 17} {
		texts := append(hostileTexts(size), hostileText{Name: "one long number", JSON: strings.Repeat("1", size)},
			hostileText{Name: "names that differ only in case", JSON: alikeNames(size)},
			hostileText{Name: "names that are numbers", JSON: numberObject(size, func(i int) string { return fmt.Sprint(1<<24 + 1 + 2*i) })},
			hostileText{Name: "names that are long numbers", JSON: numberObject(size, func(i int) string { return fmt.Sprintf("%026de-0020", 2*i+1) })},
			hostileText{Name: "names that are numbers with escapes", JSON: numberObject(size, func(i int) string { return fmt.Sprintf(`\u0031%d`, i) })},
			hostileText{Name: "names that count as every number", JSON: numberObject(size, func(i int) string { return fmt.Sprintf("0x%dp", i) })},
			hostileText{Name: "objects of names that differ only in case", JSON: "[" + strings.Repeat(`{"b":0,"B":0,"a":0},`, size/20) + "0]"})
		for _, text := range texts {
			raw := []byte(text.JSON)
			var sum [Size]byte
			var err error
			used := allocated(func() { sum, err = Sum(raw) })
			if err != nil {
				t.Errorf("%s: %v", text.Name, err)
				continue
			}
			if may := mayAllocate(text.JSON); used > may {
				t.Errorf("%s: %d bytes of text, %d allocated, %d allowed", text.Name, len(raw), used, may)
			}
			if want, ok := referenceSum(raw); !ok || sum != want {
				t.Errorf("%s: the reference differs", text.Name)
			}
		}
	}
}

// alikeNames returns an object with many pairs of names that differ only in case.
func alikeNames(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"k%d":0,"K%d":0,`, i, i)
	}
	return "{" + b.String() + `"":0}`
}

// numberObject returns an object whose names are numbers. Number i comes from the function name.
func numberObject(size int, name func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `"%s":0,`, name(i))
	}
	return "{" + b.String() + `"":0}`
}

func TestRefusedTextsBuyNoMore(t *testing.T) {
	const size = 1 << 17
	texts := []hostileText{{Name: "over the limit", JSON: `"` + strings.Repeat("x", MaxText) + `"`}}
	for _, text := range hostileTexts(size) {
		texts = append(texts, hostileText{Name: text.Name, JSON: text.JSON + "x"})
	}
	for _, text := range texts {
		raw := []byte(text.JSON)
		var err error
		used := allocated(func() { _, err = Sum(raw) })
		if may := min(mayAllocate(text.JSON), 5*size); err == nil || used > may {
			t.Errorf("%s: %d allocated, %d allowed, %v", text.Name, used, may, err)
		}
	}
}
