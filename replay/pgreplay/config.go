package pgreplay

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Config has the settings of a [Store]. [New] copies it. The zero value suits most services whose
// table exists.
type Config struct {
	// Table is the name of the table, in lower case, with its schema if it needs one. "" means
	// tripseal_used.
	Table string
	// Create makes New create the table if it is not there. Without it, run the statements of
	// [Schema] yourself; the store then needs only SELECT, INSERT, UPDATE and DELETE.
	Create bool
	// Skew is the largest allowed difference between the clocks of any two processes that seal or
	// open tokens. If PostgreSQL may have forgotten used tokens at some time, all tokens issued
	// before that time plus Skew are refused. 0 means 1 minute; a shorter time is only for tests.
	Skew time.Duration
	// SynchronousCommit is the synchronous_commit of every use: on, remote_apply, remote_write or
	// local. "" means on.
	SynchronousCommit string
	// MaxResult is the largest sealed result that the store keeps, in bytes. Sealing makes a result
	// a third larger. 0 means 96 KiB, enough for a result of 64 KiB.
	MaxResult int
	// Logger gets a warning whenever the server may have forgotten used tokens. Nil means
	// slog.Default().
	Logger *slog.Logger
}

const defaultTable = "tripseal_used"

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,49}(\.[a-z_][a-z0-9_]{0,49})?$`)

func (c *Config) setDefaults() error {
	c.Table, c.SynchronousCommit = cmp.Or(c.Table, defaultTable), cmp.Or(c.SynchronousCommit, "on")
	c.Skew, c.MaxResult = cmp.Or(c.Skew, time.Minute), cmp.Or(c.MaxResult, 96<<10)
	switch {
	case !tableName.MatchString(c.Table):
		return fmt.Errorf("pgreplay: Config.Table %q is not a name in lower case, such as tripseal_used", c.Table)
	case !slices.Contains([]string{"on", "remote_apply", "remote_write", "local"}, c.SynchronousCommit):
		return fmt.Errorf("pgreplay: Config.SynchronousCommit is %q, not on, remote_apply, remote_write or local", c.SynchronousCommit)
	case c.Skew < time.Millisecond || c.Skew > time.Hour:
		return fmt.Errorf("pgreplay: Config.Skew is %v, not between 1ms and 1h", c.Skew)
	case c.MaxResult < 1 || c.MaxResult > 16<<20:
		return fmt.Errorf("pgreplay: Config.MaxResult is %d, not between 1 and 16 MiB", c.MaxResult)
	}
	return nil
}

// Schema returns the statements that create the table with this name; "" means tripseal_used.
func Schema(table string) string {
	table = cmp.Or(table, defaultTable)
	_, name, qualified := strings.Cut(table, ".")
	if !qualified {
		name = table
	}
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
  id bytea PRIMARY KEY,
  until timestamptz NOT NULL,
  call bytea,
  tag bytea,
  lease timestamptz,
  kept timestamptz,
  result bytea
);
CREATE INDEX IF NOT EXISTS ` + name + `_until ON ` + table + ` (until);
CREATE INDEX IF NOT EXISTS ` + name + `_kept ON ` + table + ` (kept) WHERE kept IS NOT NULL;
`
}
