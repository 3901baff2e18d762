package cursor

import (
	"context"
	"encoding/json"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/callback"
)

// Pages are pages whose position is a Go value: a key of the last row, for
// example. It is written as JSON, so it has as many bytes to fit into as
// Config.MaxPosition says.
type Pages[T any] struct{ issuer Issuer }

// For makes Pages.
func For[T any](issuer Issuer) Pages[T] { return Pages[T]{issuer} }

// Place is a page and where it begins.
type Place[T any] struct {
	Page
	After T // what the page before gave to Next; zero on the first page
}

// Open is [Issuer.Open] with a typed position. A position that does not fit T
// is ErrInvalid: T changed since, which an Epoch says better.
func (p Pages[T]) Open(ctx context.Context, request mcpseal.Request, cursor string) (Place[T], error) {
	page, err := p.issuer.Open(ctx, request, cursor)
	if err != nil || page.First() {
		return Place[T]{Page: page}, err
	}
	place := Place[T]{Page: page}
	var problem error
	if panicked := callback.Guard(func() { problem = json.Unmarshal(page.Position(), &place.After) }); panicked != nil || problem != nil {
		return Place[T]{}, &RejectError{mcpseal.ReasonVersion, callback.Explain("the position does not fit %T", place.After)}
	}
	return place, nil
}

// Next is [Page.Next] with a typed position.
func (p *Place[T]) Next(ctx context.Context, after T) (string, error) {
	var (
		position []byte
		err      error
	)
	if panicked := callback.Guard(func() { position, err = json.Marshal(after) }); panicked != nil {
		return "", &IssueError{mcpseal.ReasonMisuse, panicked}
	}
	if err != nil {
		return "", &IssueError{mcpseal.ReasonMisuse, callback.Explain("a position of type %T cannot be written as JSON", after)}
	}
	return p.Page.Next(ctx, Next{Position: position})
}
