package redisreplay

import (
	"strconv"
	"strings"
	"time"

	"github.com/mcpseal/mcpseal"
)

// report is what a server says about itself.
type report struct {
	run     string // run_id
	history string // master_replid
	evicted uint64

	clock time.Time // its own, or zero if it does not tell
	asked time.Time // when, by ours

	replica   bool
	clustered bool
	alone     bool // nobody replicates from it, or did lately

	policy    string // maxmemory-policy
	aof       bool
	rewriting bool   // the append-only file, which may not be complete
	fsync     string // appendfsync; "" if it does not tell
	lazy      bool   // no-appendfsync-on-rewrite
}

const (
	errReplica = mcpseal.PlainError("this Redis is a replica: connect to the master")
	errEvicts  = mcpseal.PlainError("a server evicts keys when its memory is full, so that used tokens would work again: " +
		"set its maxmemory-policy to noeviction, or use another server")
	errNobody = mcpseal.PlainError("this Redis does not say in INFO which server it is (run_id, master_replid, role, maxmemory_policy), " +
		"so that nobody could tell when it forgets used tokens: use another server")
)

// newReport reads the answers to INFO and to CONFIG GET *append*, which may be
// empty.
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
		r.run = "" // who says nothing is no replica, but nobody
	}
	return r
}

// check refuses a server that takes no writes, forgets uses before their time,
// or cannot be told from another.
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

// maxLeap is less than what a use outlasts its token by.
const maxLeap = time.Minute

// leapt reports whether the clock of the server, by which uses expire, got ahead
// since an earlier report.
func (r *report) leapt(since *report) bool {
	return r.run == since.run && !r.clock.IsZero() && !since.clock.IsZero() &&
		r.clock.Sub(since.clock)-r.asked.Sub(since.asked) > maxLeap
}

// keeps reports whether the server has all uses after a restart. It must write
// each one to its disk before it answers. A server with replicas does not count: one
// of them may be started in its place. kept is whether it was so before: a file
// that is written anew was complete then.
func (r *report) keeps(kept bool) bool {
	return r.aof && r.fsync == "always" && !r.lazy && r.alone && (kept || !r.rewriting)
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
