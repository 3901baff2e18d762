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
	request := struct {
		Method string `json:"method"`
		Params any    `json:"params"`
	}{"elicitation/create", nil}
	mode := "form"
	switch q.Kind {
	case tripseal.KindSampling:
		request.Method, request.Params = "sampling/createMessage", q.Params
	case tripseal.KindRoots:
		request.Method, request.Params = "roots/list", struct{}{}
	case tripseal.KindURL:
		mode = "url"
		fallthrough
	default:
		request.Params = struct {
			Mode    string          `json:"mode"`
			Message string          `json:"message"`
			Schema  json.RawMessage `json:"requestedSchema,omitempty"`
			URL     string          `json:"url,omitempty"`
			ID      string          `json:"elicitationId,omitempty"`
		}{mode, q.Message, q.Schema, q.URL, q.ElicitationID}
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
