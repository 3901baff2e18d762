package passage

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal/gosdk/internal/whole"
)

// The kinds of elicit's questions, and so of their answers.
const (
	Elicitation = "e"
	Sampling    = "s"
	Roots       = "r"
)

// digestLabel keeps these digests apart from any other of a question.
const digestLabel = "mcpseal/1 elicit "

// DigestOf names a question by its kind and its exact wire form. It is not ok for a
// question that is not whole, or that JSON cannot write.
func DigestOf(question mcp.InputRequest) (kind string, digest [16]byte, ok bool) {
	switch question.(type) {
	case *mcp.ElicitParams:
		kind = Elicitation
	case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
		kind = Sampling
	case *mcp.ListRootsParams:
		kind = Roots
	}
	if kind == "" || !whole.Question(question) {
		return "", digest, false
	}
	text, err := json.Marshal(question)
	if err != nil {
		return "", digest, false
	}
	sum := sha256.Sum256(append([]byte(digestLabel+kind), text...))
	return kind, [16]byte(sum[:16]), true
}
