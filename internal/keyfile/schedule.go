package keyfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tripseal/tripseal"
)

// Room has the two times that decide how long a key must still open tokens after it has
// stopped sealing: see [Room.Span].
type Room struct {
	TTL  time.Duration // how long a token lives at most
	Skew time.Duration // how far the clock of a replica may be off
}

// Span returns how long a key must open tokens after its successor began to seal: one TTL
// and two skews. A replica seals with the old key for one skew longer if its clock is behind.
// Another replica must still open the last token of the old key, even if its own clock is ahead.
func (r Room) Span() time.Duration { return r.TTL + 2*r.Skew }

// The defaults of LongestTTL and Skew in keys.Options.
const (
	UsualTTL  = time.Hour
	UsualSkew = time.Minute
)

// AtLeast returns a Room with the larger TTL and the larger skew of the two rooms.
func (r Room) AtLeast(other Room) Room {
	return Room{max(r.TTL, other.TTL), max(r.Skew, other.Skew)}
}

// Schedule is the list of keys in the order in which they seal.
type Schedule []*Key

// Schedule returns the keys of the document in the order in which they seal.
func (d *Document) Schedule() Schedule {
	s := Schedule(d.Keys())
	slices.SortStableFunc(s, func(a, b *Key) int { return a.SealsFrom.Compare(b.SealsFrom) })
	return s
}

// Check returns an error if there is no key, if a key stops opening tokens before its tokens
// expire, or if it is unclear which key seals. It accepts a key that stopped too early if
// all tokens of this key have certainly expired by now. An error is a *[Problem].
func (d *Document) Check(now time.Time, room Room) error {
	return problem(d.check(now, room))
}

func (d *Document) check(now time.Time, room Room) error {
	s := d.Schedule()
	if len(s) == 0 {
		return errors.New("there is no key")
	}
	ends := d.endsOfSealing(s)
	for i, end := range ends {
		k := s[i]
		if next := s[i+1]; next.SealsFrom.Equal(k.SealsFrom) {
			return fmt.Errorf("keys %s and %s have the same seals-from, so it is unclear which one seals: change one of the two", k.ID, next.ID)
		}
		if short := end.tooShort(k, now, room); short != nil {
			return short
		}
	}
	if last := s[len(s)-1]; !last.OpensUntil.IsZero() {
		return fmt.Errorf("key %s opens until %s and no key follows it: set opens-until=never, or rotate", last.ID, formatTime(last.OpensUntil))
	}
	return nil
}

// TooShort is the error for a key that stops opening tokens before its last token has
// expired.
type TooShort struct {
	key    *Key
	end    endOfSealing
	room   Room
	needed time.Time
}

func (e *TooShort) Error() string {
	return fmt.Sprintf("key %s opens until %s, which is too early: its successor %s seals from %s, tokens live for %v and clocks may be off by %v, "+
		"so it is needed until %s", e.key.ID, formatTime(e.key.OpensUntil), e.end.by, formatTime(e.end.at), e.room.TTL, e.room.Skew, formatTime(e.needed))
}

// Repair returns the command that repairs the file at path, so that its keys open tokens for
// long enough.
func (e *TooShort) Repair(path string) string {
	command := "tripseal keys extend " + shellWord(path) + " --ttl " + FormatDuration(e.room.TTL)
	if e.room.Skew > UsualSkew {
		command += " --skew " + FormatDuration(e.room.Skew)
	}
	return command
}

// shellWord returns a path quoted as one word for a shell. It returns FILE if the path is
// empty or has characters that cannot be printed.
func shellWord(path string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._+:@-", r)
	}
	switch {
	case path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "FILE"
	case path[0] != '-' && !strings.ContainsFunc(path, func(r rune) bool { return !plain(r) }):
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// endOfSealing says when a key stops sealing, and which key seals from then on.
type endOfSealing struct {
	by tripseal.KeyID
	at time.Time
}

// endsOfSealing returns the time at which each key of s stops sealing, and the key that seals from
// then on. It returns nothing for the last key. Usually a key K seals until the next key N of s
// begins. But s does not contain revoked keys, and a revoked key R may have begun to seal between K
// and N:
//   - If R was not yet revoked when N began, then K stopped when R began. The result for K
//     names R.
//   - If R was revoked before N began, then K sealed again until N began. The result for K
//     names N.
func (d *Document) endsOfSealing(s Schedule) []endOfSealing {
	revoked := d.Revoked()
	slices.SortStableFunc(revoked, func(a, b Revocation) int { return a.SealsFrom.Compare(b.SealsFrom) })
	ends := make([]endOfSealing, max(len(s)-1, 0))
	r := 0
	for i := range ends {
		k, next := s[i], s[i+1]
		ends[i] = endOfSealing{next.ID, next.SealsFrom}
		for ; r < len(revoked) && revoked[r].SealsFrom.Before(next.SealsFrom); r++ {
			first := ends[i].by == next.ID
			if first && k.SealsFrom.Before(revoked[r].SealsFrom) && !revoked[r].At.Before(next.SealsFrom) {
				ends[i] = endOfSealing{revoked[r].ID, revoked[r].SealsFrom}
			}
		}
	}
	return ends
}

// tooShort returns an error if k stops opening tokens before its tokens expire. It
// returns nil if all tokens of k have certainly expired by now.
func (e endOfSealing) tooShort(k *Key, now time.Time, room Room) error {
	needed := e.at.Add(room.Span())
	if k.OpensUntil.IsZero() || !k.OpensUntil.Before(needed) || !now.Before(needed) {
		return nil
	}
	return &TooShort{k, e, room, needed}
}

// Opens reports whether the key opens tokens at t.
func (k *Key) Opens(t time.Time) bool { return k.OpensUntil.IsZero() || t.Before(k.OpensUntil) }

// SealerAt returns the key that seals at t, or nil if no key opens tokens at t. Of the keys
// that open tokens at t, it returns the newest one whose SealsFrom is not after t. If all of
// these keys have a later SealsFrom, it returns the first of them. This can happen with a
// new file, if clocks disagree.
func (s Schedule) SealerAt(t time.Time) (sealing *Key) {
	for _, k := range s {
		if k.Opens(t) && (sealing == nil || !t.Before(k.SealsFrom)) {
			sealing = k
		}
	}
	return sealing
}

// OpenersAt returns the keys that open tokens at t. The first key in the result also seals.
func (s Schedule) OpenersAt(t time.Time) (open []*Key) {
	sealing := s.SealerAt(t)
	if sealing == nil {
		return nil
	}
	open = append(open, sealing)
	for _, k := range s {
		if k != sealing && k.Opens(t) {
			open = append(open, k)
		}
	}
	return open
}

// Around returns the last date in the schedule that is not after t, and the first date after
// t. A result is zero if there is no such date.
func (s Schedule) Around(t time.Time) (since, until time.Time) {
	for _, k := range s {
		for _, moment := range []time.Time{k.SealsFrom, k.OpensUntil} {
			switch {
			case moment.IsZero():
			case !t.Before(moment):
				if since.IsZero() || moment.After(since) {
					since = moment
				}
			case until.IsZero() || moment.Before(until):
				until = moment
			}
		}
	}
	return since, until
}

// Phase is what a key does at a given time.
type Phase string

const (
	Waiting Phase = "waiting" // the key opens tokens, and will seal later
	Sealing Phase = "sealing" // the key opens and seals tokens
	Opening Phase = "opening" // the key opens tokens, but no longer seals
	Retired Phase = "retired" // the key neither opens nor seals tokens
)

// Phase returns what the key k does at the time t.
func (s Schedule) Phase(k *Key, t time.Time) Phase { return PhaseOf(k, s.SealerAt(t), t) }

// PhaseOf returns what the key k does at the time t, if sealer is the key that seals at t.
func PhaseOf(k, sealer *Key, t time.Time) Phase {
	switch {
	case !k.Opens(t):
		return Retired
	case sealer == k:
		return Sealing
	case t.Before(k.SealsFrom):
		return Waiting
	}
	return Opening
}
