package pgreplay

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tripseal/tripseal"
)

// effect is the transaction of one call.
type effect struct {
	mu   sync.Mutex
	conn *pgxpool.Conn
	tx   pgx.Tx
	over bool
}

// InTx runs f in the transaction of the call, which commits together with the result of the call. So
// after a crash there are either both or neither, and a tool whose effects are all in InTx may be
// named as one that is safe to repeat. If f returns an error or panics, what f wrote is rolled back;
// other calls of InTx in the same handler keep their writes. If the call has lost its lease, nothing
// is committed and the caller gets no result. Pass the context of the handler: it must be the one
// that [tripseal.WithCall] made. f must not commit. Waiting for locks of other calls is f's own risk.
func (s *Store) InTx(ctx context.Context, f func(pgx.Tx) error) error {
	use, claim, ok := tripseal.CallFrom(ctx)
	if !ok {
		return errNoCall
	}
	s.mu.Lock()
	e := s.txs[claim.Call]
	if e == nil {
		e = new(effect)
		s.txs[claim.Call] = e
	}
	s.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return errEnded
	}
	if e.tx == nil {
		if err := s.open(ctx, e, idOf(&use), claim.Call[:]); err != nil {
			return explain(err)
		}
	}
	return pgx.BeginFunc(ctx, e.tx, f) // a savepoint
}

// open begins the transaction of a call that holds its lease.
func (s *Store) open(ctx context.Context, e *effect, id, call []byte) error {
	conn, err := s.effects.Acquire(ctx)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		var rows int64
		if err = tx.QueryRow(ctx, s.in(heldSQL), id, call).Scan(&rows); err == nil && rows == 1 {
			e.conn, e.tx = conn, tx
			return nil
		}
		tx.Rollback(context.WithoutCancel(ctx))
	}
	conn.Release()
	return notHeld(0, err)
}

// take removes the transaction of a call from the store, or returns nil if there is none.
func (s *Store) take(call [16]byte) *effect {
	s.mu.Lock()
	e := s.txs[call]
	delete(s.txs, call)
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.tx == nil {
		return nil
	}
	return e
}

// commit ends the call in its own transaction. If the call has lost its lease, nothing is committed.
func (e *effect) commit(ctx context.Context, endSQL string, args []any) error {
	defer e.rollback() // does nothing after a commit
	return explain(unwarned(e.conn.Conn(), func() error {
		tag, err := e.tx.Exec(ctx, endSQL, args...)
		if err := notHeld(tag.RowsAffected(), err); err != nil {
			return err
		}
		return e.tx.Commit(ctx)
	}))
}

func (e *effect) rollback() {
	if e == nil {
		return
	}
	e.tx.Rollback(context.Background())
	e.conn.Release()
}
