// Package strictjson reads JSON (RFC 8259) so that no two parsers can read it differently. [Sum] returns the digest of
// a request's arguments, [Style] the digest of what another implementation writes for them, and [Members] the members
// of an object.
//
// Sum and Style read a text twice. The first reading refuses what is not allowed, and notes how many values each array
// and object has, and in which order the names of members are sorted. The second reading writes the values to a
// stream, of which only a few kilobytes are held at a time. The notes take four bytes for each array, eight for each
// object with members, twelve for each member, and twelve more for each member of the one object that is being sorted:
// less than four times the length of the text.
package strictjson

import "fmt"

const (
	// MaxLevels is how deep arrays and objects may nest.
	MaxLevels = 128
	// MaxText is the greatest length of a text that Sum accepts, in bytes.
	MaxText = 16 << 20
)

// Error says why a text is refused, and where. It never repeats the text.
type Error struct {
	Offset  int // -1 if the problem is the whole text rather than one position
	Problem string
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return "arguments: " + e.Problem
	}
	return fmt.Sprintf("arguments: %s at byte %d", e.Problem, e.Offset)
}

// Whole returns an Error about the whole text rather than one position.
func Whole(problem string) *Error { return &Error{-1, problem} }
