package redisreplay

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

// epoch is a note that the store keeps in a server beside the used tokens. While it is there
// and matches the server, the server has forgotten no used token since the epoch was made. A
// server that loses all used tokens loses the epoch too. A restart or the promotion of a
// replica may lose some used tokens; afterwards, the epoch does not match the server.
type epoch struct {
	id      string    // random, so that no two epochs have the same id
	made    time.Time // when the epoch was made, by the clock of the process that made it
	run     string    // the run_id of the server
	history string    // the master_replid of the server, which every promotion changes
	evicted uint64    // how many keys the server has evicted so far
	keeps   bool      // true if a restart of the server loses no used token
}

const epochFormat = "tripseal-epoch-1"

func newEpoch(now time.Time, r *report) epoch {
	return epoch{
		id: rand.Text(), made: now,
		run: r.run, history: r.history, evicted: r.evicted, keeps: r.keepsTokens(false),
	}
}

func (e *epoch) String() string {
	keeps := "0"
	if e.keeps {
		keeps = "1"
	}
	return strings.Join([]string{
		epochFormat, e.id, strconv.FormatInt(e.made.UnixMilli(), 10),
		e.run, e.history, strconv.FormatUint(e.evicted, 10), keeps,
	}, " ")
}

// parseEpoch decodes the text of an epoch. It returns false for a text that the method String
// cannot return.
func parseEpoch(text string) (epoch, bool) {
	fields := strings.Split(text, " ")
	if len(text) > 256 || len(fields) != 7 {
		return epoch{}, false
	}
	made, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return epoch{}, false
	}
	evicted, err := strconv.ParseUint(fields[5], 10, 64)
	if err != nil {
		return epoch{}, false
	}
	e := epoch{
		id: fields[1], made: time.UnixMilli(made),
		run: fields[3], history: fields[4], evicted: evicted, keeps: fields[6] == "1",
	}
	if e.id == "" || !isIdentity(e.run) || !isIdentity(e.history) || e.String() != text {
		return epoch{}, false
	}
	return e, true
}

// isIdentity reports whether text can be the id of a server: 40 hexadecimal digits that are
// not all zero.
func isIdentity(text string) bool {
	return len(text) == 40 && strings.Trim(text, "0123456789abcdef") == "" && strings.Trim(text, "0") != ""
}

// follow returns the epoch that must replace e after the server has sent the report r. If
// the server may have lost used tokens, the new epoch has a new id, and the reason says what
// happened. Otherwise the reason is "".
func (e epoch) follow(now time.Time, r *report) (next epoch, reason string) {
	switch {
	case e.id == "":
		return newEpoch(now, r), "it holds no epoch: it is new, or has lost all its keys"
	case e.run != r.run && !(e.keeps && r.keepsTokens(false)):
		return newEpoch(now, r), "it was restarted, or a replica was promoted"
	case e.run == r.run && e.history != r.history:
		return newEpoch(now, r), "its replication changed"
	case e.run == r.run && e.evicted != r.evicted:
		return newEpoch(now, r), "it has evicted keys"
	}
	next = e
	next.run, next.history, next.evicted, next.keeps = r.run, r.history, r.evicted, r.keepsTokens(e.keeps)
	return next, ""
}
