package strictjson

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// handler decodes a text as a handler may, and returns what it read in a form that can be compared.
type handler struct {
	name string
	read func(text []byte) string
}

// handlers are the ways in which encoding/json reads an object. With GOEXPERIMENT=jsonv2 there are
// more: see jsonv2_test.go.
var handlers = handlersWith("encoding/json", json.Unmarshal)

func handlersWith(name string, unmarshal func([]byte, any) error) []handler {
	return []handler{
		{name + " into a struct", into[struct {
			To, Amount, Task, X, Y1 any
			Number                  any `json:"1"`
		}](unmarshal)},
		{name + " into any", into[any](unmarshal)},
		{name + " into a map[string]any", into[map[string]any](unmarshal)},
		{name + " into a map[any]any", into[map[any]any](unmarshal)},
		{name + " into a map[bool]any", into[map[bool]any](unmarshal)},
		{name + " into a map[int]any", into[map[int]any](unmarshal)},
		{name + " into a map[int8]any", into[map[int8]any](unmarshal)},
		{name + " into a map[uint]any", into[map[uint]any](unmarshal)},
		{name + " into a map[uint16]any", into[map[uint16]any](unmarshal)},
		{name + " into a map[uintptr]any", into[map[uintptr]any](unmarshal)},
		{name + " into a map[time.Duration]any", into[map[time.Duration]any](unmarshal)},
		{name + " into a map[json.Number]any", into[map[json.Number]any](unmarshal)},
		{name + " into a map[float32]any", into[map[float32]any](unmarshal)},
		{name + " into a map[float64]any", into[map[float64]any](unmarshal)},
	}
}

func into[T any](unmarshal func([]byte, any) error) func([]byte) string {
	return func(text []byte) string {
		var v T
		if unmarshal(text, &v) != nil {
			return "refused"
		}
		return fmt.Sprintf("%+v", v) // sorts the keys of maps
	}
}

// objectNamed returns an object with these names, in this order, and a value for each name. The
// order of the second list does not count.
func objectNamed(names []string, all []string) []byte {
	members := make([]string, len(names))
	for i, name := range names {
		quoted, _ := json.Marshal(name)
		members[i] = fmt.Sprintf("%s:%d", quoted, slices.Index(all, name))
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

// checkOneReading writes an object in two orders. If both texts have one digest, every handler must
// read the same from both. It reports whether they have.
func checkOneReading(t *testing.T, one, other []string) (same bool) {
	t.Helper()
	texts := [2][]byte{objectNamed(one, one), objectNamed(other, one)}
	var sums [2][Size]byte
	for i, text := range texts {
		var err error
		if sums[i], err = Sum(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want, ok := referenceSum(text); !ok || want != sums[i] {
			t.Fatalf("%s: the reference differs", text)
		}
	}
	if sums[0] != sums[1] {
		return false
	}
	if !slices.Equal(one, other) {
		for _, r := range handlers {
			if a, b := r.read(texts[0]), r.read(texts[1]); a != b {
				t.Fatalf("%s and %s have one digest, and %s reads %s and %s", texts[0], texts[1], r.name, a, b)
			}
		}
	}
	return true
}

// numberNames are names that some handler takes for one number, and some that only look like it.
var numberNames = strings.Fields(`0 -0 +0 00 0.0 .0 0. 0e5 0_0 null 1e-400 -1e-400 1e-46 0x0p0 0x1p-2000
	1 01 +1 1.0 1. 1e0 10e-1 0.1e1 1_0e-1 0x1p0 0X.8P+1 0x_1p0 1.0000000001 1.00000000000000001 00000000000000000000000000000000001
	-1 -01 -1.0 12 +12 012 12.0 1.2e1 1_2 16777216 16777217 16777218 0.1 .1 1e-1 0.10000000149011612 9007199254740992 9007199254740993
	1.0000000596046447753906249 1.000000059604644775390625 1.0000000596046447753906251 1.00000011920928955078125
	1e38 1e39 1e400 -1e400 inf +Inf -inf Infinity nan NaN 1e-38 1.1754943e-38 1.4e-45 5e-324 3.4028235e38
	a 1a 0x1 0x01 1d -- 2024-01-01 e5 - + . _1 1__0 nul infin 0x1p true false`)

func TestNumbersAsNamesAreReadAsOne(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	same, other := 0, 0
	for range 5000 {
		random.Shuffle(len(numberNames), func(i, j int) { numberNames[i], numberNames[j] = numberNames[j], numberNames[i] })
		one := slices.Clone(numberNames[:1+random.IntN(4)])
		swapped := slices.Clone(one)
		random.Shuffle(len(swapped), func(i, j int) { swapped[i], swapped[j] = swapped[j], swapped[i] })
		if checkOneReading(t, one, swapped) {
			same++
		} else {
			other++
		}
	}
	if same < 500 || other < 500 {
		t.Errorf("%d texts were the same, and %d were not", same, other)
	}
}

// TestOrdersThatAreReadDifferentlyHaveTwoDigests swaps the two members of an object. If a handler takes
// both names for one, it keeps the last member, so the two texts must have two digests.
func TestOrdersThatAreReadDifferentlyHaveTwoDigests(t *testing.T) {
	read := 0
	for _, one := range numberNames {
		for _, other := range numberNames {
			names, swapped := []string{one, other}, []string{other, one}
			text, swappedText := objectNamed(names, names), objectNamed(swapped, names)
			for _, r := range handlers {
				if one == other || r.read(text) == r.read(swappedText) {
					continue
				}
				read++
				if a, b := mustSum(t, text), mustSum(t, swappedText); a == b {
					t.Errorf("%s and %s have one digest, and %s reads %s and %s", text, swappedText, r.name, r.read(text), r.read(swappedText))
				}
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d pairs were read differently", read)
	}
}

func mustSum(t *testing.T, text []byte) [Size]byte {
	sum, err := Sum(text)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// FuzzNames shuffles the members of an object, whose names are the lines of a text.
func FuzzNames(f *testing.F) {
	for chunk := range slices.Chunk(numberNames, 7) {
		f.Add(strings.Join(chunk, "\n"), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, order uint64) {
		names := strings.Split(text, "\n")
		slices.Sort(names)
		names = slices.Compact(names)
		if !utf8.ValidString(text) || len(names) > 20 {
			return
		}
		other := slices.Clone(names)
		rand.New(rand.NewPCG(order, 0)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		checkOneReading(t, names, other)
	})
}
