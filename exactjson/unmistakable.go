package exactjson

import (
	"github.com/tripseal/tripseal/internal/argdigest"
	"github.com/tripseal/tripseal/internal/jsonorder"
)

// Unmistakable reports whether the text of a JSON object means the same to every reader.
// It returns false if an object anywhere in the text has two members with one name, or if
// a name of the outermost object is misspelt (see [Names]). It also returns false if the
// text is not UTF-8, has more than 16 MiB, or nests more than 128 levels deep. Use
// Unmistakable if another parser will read the text after you have checked it.
func Unmistakable(text []byte, known Names) bool {
	if _, err := argdigest.Sum(text); err != nil { // the digest itself is not needed
		return false
	}
	members := jsonorder.ReadMembers(string(text))
	for {
		member, ok := members.Next()
		if !ok {
			return members.Whole()
		}
		if known.Misspelt(member.Name) {
			return false
		}
	}
}
