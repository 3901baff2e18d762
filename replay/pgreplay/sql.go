package pgreplay

import "strings"

// The epoch is the row with an empty id: its tag is the server's timeline, and its lease is the
// time since which the server has forgotten nothing. A use has neither tag nor lease if it was
// spent, both while its call runs, and only the tag when the call is done.
//
// Each statement sets synchronous_commit for its own transaction, whatever the pool or the pooler
// in front of the server has set.
const (
	here = `here AS MATERIALIZED (
  SELECT convert_to(left(pg_walfile_name(pg_current_wal_lsn()), 8), 'UTF8') AS timeline,
    set_config('synchronous_commit', $1, true) AS durable)`

	// claimSQL uses a token if it is not used and was issued after the epoch began.
	claimSQL = `WITH ` + here + `, epoch AS (
  SELECT used.lease AS began FROM used , here WHERE used.id = '' AND used.tag = here.timeline AND here.durable <> ''
), mine AS (
  INSERT INTO used (id, until, call, tag, lease)
  SELECT $2::bytea, clock_timestamp() + make_interval(secs => $3), $4::bytea, $5::bytea,
    CASE WHEN $5::bytea IS NOT NULL THEN clock_timestamp() + make_interval(secs => $6) END
  FROM epoch WHERE $7::timestamptz >= epoch.began
  ON CONFLICT DO NOTHING RETURNING 1
)
SELECT EXISTS (SELECT FROM mine), (SELECT began FROM epoch), u.id IS NOT NULL, u.call, u.tag, u.lease IS NULL,
  coalesce(u.lease > clock_timestamp(), false), CASE WHEN u.kept > clock_timestamp() THEN u.result END
FROM (SELECT) AS one LEFT JOIN used u ON u.id = $2::bytea`

	// epochSQL writes a new epoch if there is none, or if it is of another timeline. The later clock
	// counts, because one of them may be behind.
	epochSQL = `WITH ` + here + `
INSERT INTO used (id, until, tag, lease)
SELECT '', 'infinity', timeline, greatest(clock_timestamp(), $2::timestamptz) FROM here WHERE durable <> ''
ON CONFLICT (id) DO UPDATE SET tag = excluded.tag, lease = excluded.lease WHERE used.tag IS DISTINCT FROM excluded.tag`

	// repeatSQL lets a call take the place of one that was lost.
	repeatSQL = `UPDATE used SET call = $4, lease = clock_timestamp() + make_interval(secs => $5)
WHERE id = $2 AND call = $3 AND lease <= clock_timestamp() AND set_config('synchronous_commit', $1, true) <> ''`

	held     = ` WHERE id = $2 AND call = $3 AND lease > clock_timestamp() AND set_config('synchronous_commit', $1, true) <> ''`
	renewSQL = `UPDATE used SET lease = clock_timestamp() + make_interval(secs => $4)` + held
	freeSQL  = `DELETE FROM used` + held
	endSQL   = `UPDATE used SET lease = NULL, result = $4::bytea,
  kept = CASE WHEN $4::bytea IS NOT NULL THEN least(until, clock_timestamp() + make_interval(secs => $5)) END` + held

	heldSQL = `SELECT count(*) FROM used WHERE id = $1 AND call = $2 AND lease > clock_timestamp()`
	doneSQL = `SELECT count(*) FROM used WHERE id = $1 AND call = $2 AND tag IS NOT NULL AND lease IS NULL`

	// expireSQL removes what need not be kept any more, a few rows at a time.
	expireSQL = `WITH old AS (SELECT id FROM used WHERE until < clock_timestamp() LIMIT 500 FOR UPDATE SKIP LOCKED)
DELETE FROM used USING old WHERE used.id = old.id`
	dropSQL = `WITH old AS (SELECT id FROM used WHERE kept < clock_timestamp() LIMIT 500 FOR UPDATE SKIP LOCKED)
UPDATE used SET result = NULL, kept = NULL FROM old WHERE used.id = old.id`
)

// in returns a statement for the store's table.
func (s *Store) in(sql string) string {
	sql = strings.ReplaceAll(sql, "FROM used ", "FROM "+s.config.Table+" AS used ")
	sql = strings.ReplaceAll(sql, "JOIN used ", "JOIN "+s.config.Table+" ")
	sql = strings.ReplaceAll(sql, "INTO used ", "INTO "+s.config.Table+" AS used ")
	return strings.ReplaceAll(sql, "UPDATE used ", "UPDATE "+s.config.Table+" AS used ")
}
