package passage

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/whole"
)

// digestLabel is hashed together with a question, so that the digest differs from any
// other digest of the question.
const digestLabel = "tripseal/1 elicit "

// DigestOf returns a question's kind, and a digest of the kind and the question's exact
// JSON. ok is false if the question has a nil in it, or cannot be written as JSON.
func DigestOf(question mcp.InputRequest) (kind tripseal.Kind, digest [16]byte, ok bool) {
	if kind = KindOf(question); kind == 0 || !whole.Question(question) {
		return 0, digest, false
	}
	text, err := json.Marshal(question)
	if err != nil {
		return 0, digest, false
	}
	sum := sha256.Sum256(append(append([]byte(digestLabel), byte(kind)), text...))
	return kind, [16]byte(sum[:16]), true
}
