package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
	"github.com/mcpseal/mcpseal/gosdk/internal/whole"
)

// pins returns the questions as the boundary seals them, with the wording of those
// that elicit asks: an answer counts for that wording, so it is what must go out.
func (p *Protected) pins(passing *passage.Call, c call, a asking) ([]mcpseal.Question, error) {
	ctx, requests := passing.Context, a.questions
	changed := func() error {
		return p.refuse(ctx, c.method, "what elicit asks was changed on its way out: a middleware further in must leave its questions and its state alone")
	}
	wording, ok := passing.Wording(a.state)
	if !ok || wording != nil && len(wording) != len(requests) {
		return nil, changed()
	}
	if len(requests) == 0 {
		return nil, nil
	}
	questions := make([]mcpseal.Question, 0, len(requests))
	for key, request := range requests {
		kind := passage.KindOf(request)
		if kind == 0 || !whole.Question(request) || !utf8.ValidString(key) {
			return nil, p.refuse(ctx, c.method, fmt.Sprintf("the question %.40q is nil, has a nil message, content, tool or hint, is of a type that cannot be asked, %T, "+
				"or its key is not UTF-8", key, request))
		}
		if wording != nil {
			if _, digest, ok := passage.DigestOf(request); !ok || digest != wording[key] {
				return nil, changed()
			}
		} else if err := p.checkWritable(ctx, c.method, request); err != nil {
			return nil, err
		}
		questions = append(questions, mcpseal.Question{Key: key, Kind: kind, Digest: wording[key]})
	}
	return questions, nil
}

// checkWritable refuses what cannot be written as JSON: the SDK would not answer the
// client, or write it with nobody to recover.
func (p *Protected) checkWritable(ctx context.Context, method string, asking any) error {
	err := mcpseal.Guard(func() error {
		_, err := json.Marshal(asking)
		return err
	})
	if err != nil {
		return p.refuse(ctx, method, "a question, or the _meta beside it, cannot be written as JSON: "+err.Error())
	}
	return nil
}
