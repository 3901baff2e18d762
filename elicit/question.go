package elicit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/tripseal/tripseal"
)

// Question is a question for the client. A binding makes the request of its SDK from it; the JSON of a Question is the
// request as it is in the protocol.
type Question struct {
	Key           string          // its name in inputRequests
	Kind          tripseal.Kind   // which of the fields below it has
	Message       string          // the words for the user: of a form or a URL
	Schema        json.RawMessage // the form
	URL           string          // the URL
	ElicitationID string          // the URL question's id
	Params        json.RawMessage // the params of a sampling request
}

// MarshalJSON returns the request that asks the question.
func (q Question) MarshalJSON() ([]byte, error) {
	request := map[string]any{"method": "elicitation/create"}
	switch q.Kind {
	case tripseal.KindSampling:
		request["method"], request["params"] = "sampling/createMessage", q.Params
	case tripseal.KindRoots:
		request["method"], request["params"] = "roots/list", struct{}{}
	case tripseal.KindURL:
		request["params"] = map[string]any{
			"mode": "url", "message": q.Message, "url": q.URL, "elicitationId": q.ElicitationID,
		}
	default:
		request["params"] = map[string]any{"mode": "form", "message": q.Message, "requestedSchema": q.Schema}
	}
	return json.Marshal(request)
}

// wording tells one question from every other: it has the question's kind, and a digest of all that the client is sent.
// It is "" for no question.
type wording string

func (q *Question) wording() wording {
	var scratch [512]byte
	b := append(scratch[:0], "tripseal/1 elicit "...)
	b = append(b, byte(q.Kind))
	for _, part := range [...]string{q.Message, q.URL, q.ElicitationID} {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
	}
	b = append(binary.BigEndian.AppendUint64(b, uint64(len(q.Schema))), q.Schema...)
	sum := sha256.Sum256(append(b, q.Params...))
	return wording(base64.RawURLEncoding.AppendEncode(append(scratch[:0], '0'+byte(q.Kind)), sum[:16]))
}

func (w wording) kind() tripseal.Kind { return tripseal.Kind(w[0] - '0') }
