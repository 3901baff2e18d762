package redisreplay

import (
	"strconv"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
)

// report is what a server says about itself.
type report struct {
	run     string // the field run_id of INFO
	history string // the field master_replid of INFO
	evicted uint64

	clock time.Time // the time by the server's clock; zero if the server does not tell it
	asked time.Time // when the store asked for the report, by the clock of this process

	replica   bool
	clustered bool
	alone     bool // true if the server has no replicas, and had none lately

	policy    string // the setting maxmemory-policy
	aof       bool
	rewriting bool   // true if the append-only file is being rewritten, and so may not be complete
	fsync     string // the setting appendfsync; "" if the server does not say
	lazy      bool   // true if the server may delay writing to disk during a rewrite, or does not say: see no-appendfsync-on-rewrite
}

const (
	errReplica = tripseal.PlainError("this Redis is a replica: connect to the master")
	errEvicts  = tripseal.PlainError("a server evicts keys when its memory is full, and used tokens would work again: " +
		"set its maxmemory-policy to noeviction, or use another server")
	errNobody = tripseal.PlainError("this Redis does not say in INFO which server it is (run_id, master_replid, role, maxmemory_policy), " +
		"so the store cannot notice when this Redis forgets used tokens: use another server")
)

// newReport makes a report from the answers to INFO and to CONFIG GET *append*. The second
// answer may be empty.
func newReport(info string, config map[string]string) report {
	said := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			said[name] = value
		}
	}
	r := report{
		run:       said["run_id"],
		history:   said["master_replid"],
		replica:   said["role"] != "master",
		clustered: said["cluster_enabled"] == "1",
		alone:     said["connected_slaves"] == "0" && said["repl_backlog_active"] == "0",
		policy:    said["maxmemory_policy"],
		aof:       said["aof_enabled"] == "1",
		rewriting: said["aof_rewrite_in_progress"] != "0" || said["aof_rewrite_scheduled"] != "0",
		fsync:     config["appendfsync"],
		lazy:      config["no-appendfsync-on-rewrite"] != "no",
	}
	if micros, err := strconv.ParseInt(said["server_time_usec"], 10, 64); err == nil {
		r.clock = time.UnixMicro(micros)
	}
	r.evicted, _ = strconv.ParseUint(said["evicted_keys"], 10, 64)
	if said["role"] == "" {
		r.run = "" // makes r.check refuse the server, because it may be a replica
	}
	return r
}

// check returns an error if the server is a replica, evicts keys, or cannot be identified.
func (r *report) check() error {
	switch {
	case !isIdentity(r.run) || !isIdentity(r.history) || r.policy == "":
		return errNobody
	case r.replica:
		return errReplica
	case r.policy != "noeviction":
		return errEvicts
	}
	return nil
}

// maxLeap is how far a server's clock may leap ahead. The server keeps a used token for
// more than maxLeap after the token expires, so no used token is forgotten too
// early after such a leap.
const maxLeap = time.Minute

// leapt reports whether the server's clock leapt ahead since an earlier report of the same
// server. After a leap, keys that hold used tokens may have expired too early.
func (r *report) leapt(since *report) bool {
	return r.run == since.run && !r.clock.IsZero() && !since.clock.IsZero() &&
		r.clock.Sub(since.clock)-r.asked.Sub(since.asked) > maxLeap
}

// keepsTokens reports whether the server still has all used tokens after a restart. For that, the
// server must write to its disk before it answers, and must have no replicas: a replica that lacks
// used tokens may take its place. The parameter is the result for the previous report. If it is
// true, the append-only file was complete at that time, and stays complete while it is rewritten.
func (r *report) keepsTokens(previous bool) bool {
	return r.aof && r.fsync == "always" && !r.lazy && r.alone && (previous || !r.rewriting)
}

func (r *report) persistence() string {
	switch {
	case r.aof && r.fsync == "":
		return "appendonly, and it does not tell appendfsync"
	case r.aof:
		return "appendonly, appendfsync " + r.fsync
	}
	return "no appendonly"
}
