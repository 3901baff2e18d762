package elicit

import (
	"encoding/base64"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// state is what a call remembers between two rounds. It goes out sealed.
type state struct {
	Version int `json:"v"`
	// Asked has the digest of each question of the last round, by its key.
	Asked map[string]string `json:"q,omitempty"`
	// Answers are the answers so far.
	Answers map[string]answer `json:"a,omitempty"`
	// Kept is what Once computed.
	Kept map[string]json.RawMessage `json:"k,omitempty"`
	// URLs are the ids of the questions about URLs.
	URLs map[string]string `json:"u,omitempty"`
	// Reworded counts how often in a row a question changed after it was answered.
	Reworded map[string]int `json:"r,omitempty"`
}

const stateVersion = 1

// answer is one answer, and the digest of its question.
type answer struct {
	Digest  string          `json:"d"`
	Action  Action          `json:"o"`
	Content json.RawMessage `json:"c,omitempty"`
}

// readState reads what an earlier round wrote. It is not ok for any other text, such
// as the state of a handler that was written by hand before. A text may look like a
// state of elicit and not be one: the token says whether elicit wrote it.
func readState(text string) (s state, ok bool) {
	if json.Unmarshal([]byte(text), &s) != nil || s.Version != stateVersion {
		return s, false
	}
	for key, a := range s.Answers {
		if !a.Action.valid() {
			delete(s.Answers, key)
		}
	}
	return s, true
}

// wording returns what was asked, in the form that the token has.
func (s *state) wording() map[string][16]byte {
	wording := make(map[string][16]byte, len(s.Asked))
	for key, digest := range s.Asked {
		sum, err := base64.RawURLEncoding.DecodeString(digest[min(1, len(digest)):])
		if err != nil || len(sum) != 16 {
			sum = make([]byte, 16) // no token has this
		}
		wording[key] = [16]byte(sum)
	}
	return wording
}

func (s *state) text() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

// digestOf returns the kind of a question, as a digit, and the digest of its wording.
func digestOf(question mcp.InputRequest) (string, bool) {
	kind, digest, ok := passage.DigestOf(question)
	return string('0'+rune(kind)) + base64.RawURLEncoding.EncodeToString(digest[:]), ok
}

// takes reports whether the question with this digest takes such an answer.
func takes(digest string, answer mcp.InputResponse) bool {
	kind := passage.KindOfAnswer(answer)
	return kind != 0 && digest != "" && mcpseal.Kind(digest[0]-'0').Takes(kind)
}
