package exactjson

import (
	"strings"

	"github.com/tripseal/tripseal/internal/jsonorder"
)

// Names is a set of names. It also finds misspelt names: those that differ from a name in
// the set only in upper and lower case. encoding/json treats such names as equal. Use
// Names for the names in a schema: see [Put]. The zero value is empty and ready to use.
type Names struct {
	names  map[string]bool     // the names in the set
	folded map[string][]string // maps a folded name (see fold) to the names in the set that fold to it
}

// Add adds names to the set. Call it for each property in the schema.
func (s *Names) Add(names ...string) {
	if s.folded == nil {
		s.names, s.folded = map[string]bool{}, map[string][]string{}
	}
	for _, name := range names {
		if !s.Has(name) {
			s.names[name] = true
			s.folded[fold(name)] = append(s.folded[fold(name)], name)
		}
	}
}

// Has reports whether the set has exactly this name. Use it to tell a known member from
// an unknown one.
func (s Names) Has(name string) bool { return s.names[name] }

// Misspelt reports whether the set lacks this name, but has one that differs from it only
// in upper and lower case. Refuse a member whose name is misspelt: another parser would
// read it as the member with the known name.
func (s Names) Misspelt(name string) bool { return !s.Has(name) && len(s.folded[fold(name)]) > 0 }

// hasTwins reports whether the set has this name in several spellings, which differ only in
// upper and lower case.
func (s Names) hasTwins(name string) bool { return len(s.folded[fold(name)]) > 1 }

// fold returns the same text for two names if they differ only in upper and lower case,
// as strings.EqualFold and encoding/json define it.
func fold(name string) string { return strings.Map(jsonorder.Fold, name) }
