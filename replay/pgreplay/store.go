package pgreplay

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tripseal/tripseal"
)

// Store is a [tripseal.ResultStore] in PostgreSQL. Set it as tripseal.Config.Replay if several
// processes open the same tokens.
type Store struct {
	config  Config
	pool    *pgxpool.Pool
	effects *pgxpool.Pool // for the transactions of handlers, so that no use waits for them
	uses    atomic.Int64
	tidying atomic.Bool
	refused atomic.Int64 // the last epoch for which the log got a warning

	mu  sync.Mutex
	txs map[[16]byte]*effect // by the id of the call
}

// New returns a store with connections of its own. The store copies the pool's config. New returns
// an error if it finds that a token could work twice: for example, if the server is a standby, does
// not write to its disk, or lacks a function that the store needs. Call New once, when your MCP
// server starts, and Close at its end.
func New(ctx context.Context, pool *pgxpool.Config, config Config) (*Store, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	config.Logger = tripseal.Logger(config.Logger)
	s := &Store{config: config, txs: make(map[[16]byte]*effect)}
	for _, p := range []**pgxpool.Pool{&s.pool, &s.effects} {
		own := pool.Copy()
		own.MinConns = 0
		notice := own.ConnConfig.OnNotice
		own.ConnConfig.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
			if n.SeverityUnlocalized == "WARNING" {
				c.CustomData()[warned] = true
			}
			if notice != nil {
				notice(c, n)
			}
		}
		var err error
		if *p, err = pgxpool.NewWithConfig(ctx, own); err != nil {
			s.Close()
			return nil, fmt.Errorf("pgreplay: %w", explain(err))
		}
	}
	if err := s.check(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("pgreplay: %w", explain(err))
	}
	go s.tidy()
	return s, nil
}

// Close closes the connections of the store. Calls that run must have ended before.
func (s *Store) Close() {
	for _, p := range []*pgxpool.Pool{s.pool, s.effects} {
		if p != nil {
			p.Close()
		}
	}
}

// check returns an error if the server could forget used tokens without a trace. It creates the table
// if it should, and the epoch.
func (s *Store) check(ctx context.Context) error {
	var standby bool
	var fsync string
	var clock time.Time
	asked := time.Now()
	err := s.pool.QueryRow(ctx, `SELECT pg_is_in_recovery(), current_setting('fsync'), clock_timestamp()`).Scan(&standby, &fsync, &clock)
	allowed := max(s.config.Skew, time.Second)
	switch {
	case err != nil:
		return err
	case standby:
		return errStandby
	case fsync != "on":
		return errNoSync
	case clock.Before(asked.Add(-allowed)) || clock.After(time.Now().Add(allowed)):
		return errClock
	}
	if s.config.Create {
		if _, err := s.pool.Exec(ctx, Schema(s.config.Table), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return s.begin(ctx)
}

// begin makes an epoch if there is none of this timeline.
func (s *Store) begin(ctx context.Context) error {
	_, err := s.exec(ctx, epochSQL, time.Now())
	return err
}

// warned is the name of the mark of a connection that got a warning: PostgreSQL gives one instead of
// an error if it committed without the standby that it had to wait for.
const warned = "tripseal: a warning"

// exec runs a statement that must be durable, and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	err = s.durably(ctx, func(c *pgx.Conn) error {
		tag, err := c.Exec(ctx, s.in(sql), append([]any{s.config.SynchronousCommit}, args...)...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

func (s *Store) durably(ctx context.Context, f func(*pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return unwarned(c.Conn(), func() error { return f(c.Conn()) }) })
	return explain(err)
}

// unwarned returns an error if the connection gets a warning while f runs.
func unwarned(c *pgx.Conn, f func() error) error {
	data := c.PgConn().CustomData()
	delete(data, warned)
	if err := f(); err != nil {
		return err
	}
	if data[warned] != nil {
		return errOnlyLocal
	}
	return nil
}

// Spend spends a token: see [tripseal.ReplayStore]. It returns no later than the deadline of
// the context.
func (s *Store) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	var claim tripseal.Claim
	rand.Read(claim.Call[:]) // never fails
	begun, err := s.claim(ctx, &use, &claim, nil)
	return begun.State == tripseal.CallFirst, err
}

// Begin uses a token for a call: see [tripseal.ResultStore].
func (s *Store) Begin(ctx context.Context, use tripseal.Use, claim tripseal.Claim) (tripseal.Begun, error) {
	return s.claim(ctx, &use, &claim, claim.Tag[:])
}

// claim uses a token. The tag is nil for Spend.
func (s *Store) claim(ctx context.Context, use *tripseal.Use, claim *tripseal.Claim, tag []byte) (begun tripseal.Begun, err error) {
	left := time.Until(use.Until.Round(0))
	switch {
	case use.Round < 0 || use.Round > 1<<16-1:
		return begun, errBadRound
	case left <= 0:
		return begun, errOver
	}
	if lifetime := use.Until.Sub(use.Issued); lifetime <= maxLifetime { // the clock of this process may be ahead
		left = max(left, lifetime)
	}
	id, oldest := idOf(use), use.Issued.Add(-s.config.Skew)
	for range 5 { // again if a row or the epoch was just written
		var first, known, done, held bool
		var began *time.Time
		var call, otherTag, result []byte
		err := s.durably(ctx, func(c *pgx.Conn) error {
			return c.QueryRow(ctx, s.in(claimSQL), s.config.SynchronousCommit, id, left.Seconds(), claim.Call[:], tag, claim.Lease.Seconds(), oldest).
				Scan(&first, &began, &known, &call, &otherTag, &done, &held, &result)
		})
		switch {
		case err != nil:
			return begun, err
		case first:
			s.tidyNowAndThen()
			return tripseal.Begun{State: tripseal.CallFirst}, nil
		case known && (tag == nil || otherTag == nil || subtle.ConstantTimeCompare(tag, otherTag) != 1):
			return tripseal.Begun{State: tripseal.CallOther}, nil
		case known && done && result != nil:
			return tripseal.Begun{State: tripseal.CallDone, Result: result}, nil
		case known && done:
			return tripseal.Begun{State: tripseal.CallNotKept}, nil
		case known && held && bytes.Equal(call, claim.Call[:]): // this Begin was sent again
			return tripseal.Begun{State: tripseal.CallFirst}, nil
		case known && held:
			return tripseal.Begun{State: tripseal.CallRunning}, nil
		case known && !claim.Repeat:
			return tripseal.Begun{State: tripseal.CallLost}, nil
		case known:
			switch n, err := s.exec(ctx, repeatSQL, id, call, claim.Call[:], claim.Lease.Seconds()); {
			case err != nil:
				return begun, err
			case n == 1:
				return tripseal.Begun{State: tripseal.CallFirst}, nil
			}
		case began == nil:
			if err := s.begin(ctx); err != nil {
				return begun, err
			}
		case oldest.Before(*began):
			if s.refused.Swap(began.UnixMicro()) != began.UnixMicro() {
				s.config.Logger.LogAttrs(ctx, slog.LevelWarn,
					"pgreplay: tokens issued before issued_before are refused, because PostgreSQL is new, or may have forgotten used tokens",
					slog.Time("issued_before", began.Add(s.config.Skew)))
			}
			return begun, errForgot
		}
	}
	return begun, errRestless
}

// maxLifetime is longer than any lifetime that a boundary allows.
const maxLifetime = 11 * 365 * 24 * time.Hour

func idOf(use *tripseal.Use) []byte {
	return binary.BigEndian.AppendUint16(append([]byte(nil), use.Flow[:]...), uint16(use.Round))
}

// Renew makes the lease of a call last longer: see [tripseal.ResultStore].
func (s *Store) Renew(ctx context.Context, use tripseal.Use, claim tripseal.Claim) error {
	return notHeld(s.exec(ctx, renewSQL, idOf(&use), claim.Call[:], claim.Lease.Seconds()))
}

// End ends a call: see [tripseal.ResultStore]. If the handler has used [Store.InTx], its writes and
// the result are committed together.
func (s *Store) End(ctx context.Context, use tripseal.Use, claim tripseal.Claim, end tripseal.End) error {
	id, effect := idOf(&use), s.take(claim.Call)
	if end.GiveBack {
		effect.rollback()
		return notHeld(s.exec(ctx, freeSQL, id, claim.Call[:]))
	}
	if len(end.Result) == 0 || len(end.Result) > s.config.MaxResult || end.Keep <= 0 {
		end.Result = nil
	}
	args := []any{s.config.SynchronousCommit, id, claim.Call[:], end.Result, min(end.Keep, maxLifetime).Seconds()}
	if effect != nil {
		return effect.commit(ctx, s.in(endSQL), args)
	}
	n, err := s.exec(ctx, endSQL, args[1:]...)
	if err == nil && n == 0 { // perhaps this End was sent again
		err = s.durably(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, s.in(doneSQL), id, claim.Call[:]).Scan(&n) })
	}
	return notHeld(n, err)
}

func notHeld(rows int64, err error) error {
	if err == nil && rows != 1 {
		return errNotHeld
	}
	return err
}

// tidyNowAndThen removes expired rows after every hundredth use.
func (s *Store) tidyNowAndThen() {
	if s.uses.Add(1)%100 == 0 {
		go s.tidy()
	}
}

func (s *Store) tidy() {
	if !s.tidying.CompareAndSwap(false, true) {
		return
	}
	defer s.tidying.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, sql := range []string{expireSQL, dropSQL} {
		s.pool.Exec(ctx, s.in(sql)) // an error would come again with the next use
	}
}

var _ tripseal.ResultStore = (*Store)(nil)
