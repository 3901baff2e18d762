package exactjson

import (
	"slices"
	"strings"
	"unicode"
)

// Names is a set of names that finds misspelt ones: those that differ from a name of the
// set only in case. encoding/json takes such names for each other. Use it for the names
// that a schema has: see [Put]. The zero value is empty and ready to use.
type Names struct {
	folded map[string][]string // by what fold returns for the names
}

// Add adds names to the set.
func (s *Names) Add(names ...string) {
	if s.folded == nil {
		s.folded = map[string][]string{}
	}
	for _, name := range names {
		if !s.Has(name) {
			s.folded[fold(name)] = append(s.folded[fold(name)], name)
		}
	}
}

// Has reports whether the set has exactly this name.
func (s Names) Has(name string) bool { return slices.Contains(s.folded[fold(name)], name) }

// Misspelt reports whether the set has this name, but only in another case.
func (s Names) Misspelt(name string) bool { return len(s.folded[fold(name)]) > 0 && !s.Has(name) }

// twins reports whether the set has this name in more than one case.
func (s Names) twins(name string) bool { return len(s.folded[fold(name)]) > 1 }

// fold returns the same text for two names if they differ only in case, as
// strings.EqualFold and encoding/json see it.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the smallest of the runes that differ only in case
			}
			r = next
		}
	}, name)
}
