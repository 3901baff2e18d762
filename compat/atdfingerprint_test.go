package compat

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"testing"
)

// checkATDFingerprint checks the fingerprint of arguments. Package compat/atd checks the cursors.
func checkATDFingerprint(t *testing.T, c *vector) verdict {
	sum, err := ATDFingerprint([]byte(c.ArgsJSON), true)
	if slices.Contains(refusedOnTop, c.Name) {
		return checkRefused(t, err)
	}
	if err != nil {
		return verdict{}
	}
	if sum != sha256.Sum256([]byte(c.Serialized)) {
		t.Errorf("the digest is not that of %s", c.Serialized)
	}
	return verdict{true, hex.EncodeToString(sum[:]), c.FingerprintHex}
}

func TestLargeFloatsHaveTwoSpellings(t *testing.T) {
	const arguments = `{"x":1e16,"y":1e-7}`
	for style, want := range map[exponents]string{plainExponents: `{"x":1e16,"y":1e-7}`, signedExponents: `{"x":1e+16,"y":1e-7}`} {
		if sum, err := ATDFingerprint([]byte(arguments), style == plainExponents); err != nil || sum != sha256.Sum256([]byte(want)) {
			t.Errorf("%x, %v", sum, err)
		}
	}
}

// TestFloatsAreReadAsThePeerReadsThem allows a small difference from the nearest double, because the
// peer does not always read the nearest one.
func TestFloatsAreReadAsThePeerReadsThem(t *testing.T) {
	for _, c := range []struct {
		literal string
		want    float64
	}{
		{"1.0", 1}, {"0.1", 0.1}, {"1e-400", 0}, {"0e999999999999", 0}, {"1e-999999999999", 0},
		{"2.2250738585072014e-308", 2.2250738585072014e-308},
		{"18446744073709551616", 18446744073709551616},
	} {
		if got, ok := serdeFloat(c.literal); !ok || math.Abs(got-c.want) > c.want*1e-15 {
			t.Errorf("%s is read as %v, %v", c.literal, got, ok)
		}
	}
	for _, literal := range []string{"1e309", "1e400", "1e99999999999", "9e308"} {
		if got, ok := serdeFloat(literal); ok {
			t.Errorf("%s is read as %v", literal, got)
		}
	}
}
