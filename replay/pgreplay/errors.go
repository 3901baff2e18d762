package pgreplay

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tripseal/tripseal"
)

const (
	errOver     = tripseal.PlainError("the token has expired")
	errBadRound = tripseal.PlainError("the token's round is not a number that a token can have")
	errNotHeld  = tripseal.PlainError("the call does not hold the lease of its token")
	errRestless = tripseal.PlainError("the row of the token or the epoch changes too fast to be read")
	errEnded    = tripseal.PlainError("the call has ended: InTx works only until the handler returns")
	errNoCall   = tripseal.PlainError("the context belongs to no call that keeps its result: pass the handler's own")
	errForgot   = tripseal.PlainError("PostgreSQL may have forgotten whether this token was used: " +
		"the user starts over; normal for a minute after the table was new or a standby was promoted")
	errOnlyLocal = tripseal.PlainError("PostgreSQL committed only on its own disk, and the standby that it must wait for may lack the use")
	errStandby   = tripseal.PlainError("this PostgreSQL is a standby: connect to the primary (target_session_attrs=read-write)")
	errNoSync    = tripseal.PlainError("this PostgreSQL has fsync off, so a crash forgets used tokens: set fsync on")
	errClock     = tripseal.PlainError("the clock of this PostgreSQL and the clock of this machine differ by more than Config.Skew: set them")
	errService   = tripseal.PlainError("this service does not have, or does not allow, pg_current_wal_lsn() and pg_walfile_name(), so the store " +
		"cannot notice when a standby that lacks used tokens is promoted: use another service, or package redisreplay")
	errRights = tripseal.PlainError("the PostgreSQL user lacks a right: it needs SELECT, INSERT, UPDATE and DELETE on the table, " +
		"EXECUTE on pg_current_wal_lsn and pg_walfile_name, and CREATE on the schema if Config.Create is set")
	errNoTable = tripseal.PlainError("there is no table of used tokens, or it has other columns: set Config.Create, or run the statements of pgreplay.Schema")
)

// failure is an error of the client with a text that is safe to log. The text of the original error
// may hold a secret.
type failure struct {
	text tripseal.PlainError
	err  error
}

func (f *failure) Error() string   { return f.text.Error() }
func (f *failure) Unwrap() []error { return []error{f.text, f.err} }

// codes explains what a server replies, by the beginning of the SQLSTATE.
var codes = []struct {
	code string
	text tripseal.PlainError
}{
	{"42883", errService}, {"0A000", errService}, {"42501", errRights}, {"42P01", errNoTable}, {"42703", errNoTable},
	{"3F000", errNoTable}, {"25006", errStandby}, {"55000", errStandby},
	{"28", "PostgreSQL refused the user or password"},
	{"3D000", "PostgreSQL has no such database"},
	{"53", "PostgreSQL is out of connections, memory or disk"},
	{"57014", "PostgreSQL ended the statement: it took too long, or somebody cancelled it"},
	{"57", "PostgreSQL is starting or stopping"},
	{"", "PostgreSQL refused the statement"},
}

// explain returns err with a text that is safe to log.
func explain(err error) error {
	var plain tripseal.PlainError
	if err == nil || errors.As(err, &plain) {
		return err
	}
	text := tripseal.PlainError("PostgreSQL cannot be reached")
	var reply *pgconn.PgError
	var timeout net.Error
	switch {
	case errors.As(err, &reply):
		for _, known := range codes {
			if strings.HasPrefix(reply.Code, known.code) {
				text = known.text
				break
			}
		}
	case errors.Is(err, context.Canceled):
		text = "the caller gave up"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		text = "PostgreSQL did not answer in time"
	}
	return &failure{text, err}
}
