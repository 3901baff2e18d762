package keys_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/keys"
	"github.com/mcpseal/mcpseal/sealtest"
)

func TestEnvironment(t *testing.T) {
	a, b := mcpseal.GenerateKey(), mcpseal.GenerateKey()
	t.Setenv(keys.Variable, " "+a.Reveal()+"\n"+b.Reveal()+"\t")
	ring, err := keys.Environment()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ring.IDs(), []mcpseal.KeyID{a.ID(), b.ID()}) {
		t.Errorf("ids %v", ring.IDs())
	}
	sealtest.TestKeySource(t, ring)
}

func TestEnvironmentWithoutKeys(t *testing.T) {
	a := mcpseal.GenerateKey().Reveal()
	for value, want := range map[string]string{
		"":                 "MCPSEAL_KEYS is empty or not set",
		" \n":              "MCPSEAL_KEYS is empty or not set",
		a + " " + a[:40]:   "key 2 in MCPSEAL_KEYS is not the text of a key",
		a + "," + a:        "key 1 in MCPSEAL_KEYS is not the text of a key",
		a + " " + a:        "have one id",
		`"` + a + `"`:      "key 1 in MCPSEAL_KEYS",
		"mcpseal_key1_abc": "key 1 in MCPSEAL_KEYS",
	} {
		t.Setenv(keys.Variable, value)
		_, err := keys.Environment()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), a[20:30]) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
