package strictjson

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestFloatIsTheNearestDouble compares Float with strconv, mostly for numbers near the largest
// double.
func TestFloatIsTheNearestDouble(t *testing.T) {
	literals := []string{"0", "-0", "0.0", "0e999", "0.000e400", "1e308", "1e309", "-1e309", "9e308", "1.7976931348623157e308", "1.7976931348623158e308",
		"1.7976931348623159e308", "17976931348623158e292", "0.00017976931348623159e312", "0.00017976931348623157e312", string(leastInfinite), string(leastInfinite) + ".0", "-" + string(leastInfinite),
		string(leastInfinite) + "e-1", string(leastInfinite)[:len(string(leastInfinite))-1] + "1", "5e-324", "1e-400", "1e999999999999999999", "1e-999999999999999999", "-1.5", "123.456e+5", "NaN", "-Infinity"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		digits := string(leastInfinite)[:1+r.IntN(len(string(leastInfinite)))]
		if at := r.IntN(len(digits)); r.IntN(2) == 0 {
			digits = digits[:at] + strconv.Itoa(r.IntN(10)) + digits[at+1:]
		}
		point := r.IntN(len(digits)) + 1
		literal := digits[:point]
		if literal[0] == '0' {
			literal = "1" + literal[1:]
		}
		if point < len(digits) {
			literal += "." + digits[point:]
		}
		literals = append(literals, literal+"e"+strconv.Itoa(308-point+1+r.IntN(3)-1))
	}
	infinite := 0
	for _, literal := range literals {
		want, _ := strconv.ParseFloat(literal, 64)
		got := Float(literal)
		if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %v, want %v", literal, got, want)
		}
		if math.IsInf(want, 0) {
			infinite++
		}
	}
	if infinite < 1000 || infinite > len(literals)-1000 {
		t.Errorf("%d of %d literals are infinite: this proves little", infinite, len(literals))
	}
	if n := testing.AllocsPerRun(10, func() { Float("1e999") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
