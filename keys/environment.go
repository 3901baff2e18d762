package keys

import (
	"fmt"
	"os"
	"strings"

	"github.com/mcpseal/mcpseal"
)

// Variable is the environment variable that [Environment] reads.
const Variable = "MCPSEAL_KEYS"

// Environment returns the ring in MCPSEAL_KEYS: keys with white space between
// them, of which the first seals. An error names the key by its place and never
// repeats it.
//
// A process passes its environment on to those it starts, and the keys change
// only when it is started again: prefer [OpenFile].
func Environment() (*mcpseal.Ring, error) {
	texts := strings.Fields(os.Getenv(Variable))
	if len(texts) == 0 {
		return nil, fmt.Errorf("keys: the environment variable %s is empty or not set; it holds keys with spaces between them, "+
			"the first of which seals; make one with mcpseal keys new --print", Variable)
	}
	var all []mcpseal.Key
	for i, text := range texts {
		key, err := mcpseal.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("keys: key %d in %s is %s", i+1, Variable, strings.TrimPrefix(err.Error(), "mcpseal: "))
		}
		all = append(all, key)
	}
	ring, err := mcpseal.NewRing(all...)
	if err != nil {
		return nil, fmt.Errorf("keys: %s: %s", Variable, strings.TrimPrefix(err.Error(), "mcpseal: "))
	}
	return ring, nil
}
