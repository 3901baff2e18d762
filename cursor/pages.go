package cursor

import (
	"context"

	"github.com/tripseal/tripseal"
)

// Pages opens pages whose position is a Go value of type T, such as the key of the last row. The
// position is written as JSON, as [tripseal.EncodeState] writes a state, in at most Config.MaxPosition
// bytes. Use Pages unless your positions are bytes already.
type Pages[T any] struct{ issuer Issuer }

// For creates a [Pages] value, which opens and issues the cursors of an issuer. Call it once for
// each type of position.
func For[T any](issuer Issuer) Pages[T] { return Pages[T]{issuer} }

// Place is a [Page] with its position as a Go value. [Pages.Open] returns a Place for
// each request.
type Place[T any] struct {
	Page
	After T // the position: what the handler passed to Next on the previous page; zero on the first page
}

// Open does what [Issuer.Open] does, and decodes the position. If T has changed since the
// cursor was issued, the position may not fit T: T may lack a member of the position, or
// have another type for it. In that case, the error is ErrInvalid. To be safe, change
// [Config.Epoch] whenever T changes. Call Open for every request, also for the first page.
func (p Pages[T]) Open(ctx context.Context, request tripseal.Request, cursor string) (Place[T], error) {
	page, err := p.issuer.Open(ctx, request, cursor)
	if err != nil || page.First() {
		return Place[T]{Page: page}, err
	}
	place := Place[T]{Page: page}
	err = tripseal.Guard(func() (err error) {
		place.After, err = tripseal.DecodeState[T](string(page.Position()))
		return err
	})
	if err != nil {
		fail := failedBecause(tripseal.ReasonVersion, "the position does not fit %T", place.After)
		if page.cursors != nil {
			page.cursors.report(ctx, OpOpen, page.cursors.start(), &request, cursor, fail)
		}
		return Place[T]{}, &RejectError{fail.reason, fail.cause}
	}
	return place, nil
}

// Next does what [Page.Next] does. Pass the position where the next page begins, as a Go
// value. Call Next unless this page is the last.
func (p *Place[T]) Next(ctx context.Context, after T) (string, error) {
	var position string
	err := tripseal.Guard(func() (err error) {
		position, err = tripseal.EncodeState(&after) // through a pointer, so that T may be an interface
		return err
	})
	if err != nil {
		fail := failedBecause(tripseal.ReasonMisuse, "a position of type %T cannot be written as JSON and read back", after)
		if p.cursors != nil {
			p.cursors.report(ctx, OpIssue, p.cursors.start(), &p.request, "", fail)
		}
		return "", &IssueError{fail.reason, fail.cause}
	}
	return p.Page.Next(ctx, NextPage{Position: []byte(position)})
}
