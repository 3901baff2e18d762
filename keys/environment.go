package keys

import (
	"fmt"
	"os"
	"strings"

	"github.com/mcpseal/mcpseal"
)

// Variable is the environment variable that [Environment] reads.
const Variable = "MCPSEAL_KEYS"

// Environment returns the ring in MCPSEAL_KEYS: keys separated by white space, of
// which the first seals. An error names a key by its position and never repeats it.
//
// Prefer [OpenFile]: a process passes its environment on to the processes that it
// starts, and the keys change only when it is restarted.
func Environment() (*mcpseal.Ring, error) {
	texts := strings.Fields(os.Getenv(Variable))
	if len(texts) == 0 {
		return nil, fmt.Errorf("keys: the environment variable %s is empty or not set; set it to keys separated by spaces, "+
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
