package keyfile

import (
	"errors"
	"fmt"
	"slices"
	"time"

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
// all tokens of this key have certainly expired by now.
func (d *Document) Check(now time.Time, room Room) error {
	s := d.Schedule()
	if len(s) == 0 {
		return errors.New("there is no key")
	}
	for i, end := range d.endsOfSealing(s) {
		k := s[i]
		if next := s[i+1]; next.SealsFrom.Equal(k.SealsFrom) {
			return fmt.Errorf("keys %s and %s have the same seals-from, so it is unclear which seals: change one", k.ID, next.ID)
		}
		if needed := end.at.Add(room.Span()); k.stopsTooEarly(needed, now) {
			return fmt.Errorf("key %s opens until %s, which is too early: its successor %s seals from %s, tokens live for %v "+
				"and clocks may be off by %v, so its opens-until must be %s or later", k.ID, formatTime(k.OpensUntil),
				end.by, formatTime(end.at), room.TTL, room.Skew, formatTime(needed))
		}
	}
	if last := s[len(s)-1]; !last.OpensUntil.IsZero() {
		return fmt.Errorf("key %s opens until %s and no key follows it: set opens-until=never, or rotate",
			last.ID, formatTime(last.OpensUntil))
	}
	return nil
}

// stopsTooEarly reports whether k stops opening tokens before the time at which its last token
// expires. If that time is past, nothing is lost any more.
func (k *Key) stopsTooEarly(needed, now time.Time) bool {
	return !k.OpensUntil.IsZero() && k.OpensUntil.Before(needed) && now.Before(needed)
}

// endOfSealing says when a key stops sealing, and which key seals from then on.
type endOfSealing struct {
	by tripseal.KeyID
	at time.Time
}

// endsOfSealing returns when each key of s stops sealing, except the last: when the next key
// begins. That may be a key that was revoked later, unless it was revoked before it began.
func (d *Document) endsOfSealing(s Schedule) []endOfSealing {
	var begins []endOfSealing
	for _, k := range s {
		begins = append(begins, endOfSealing{k.ID, k.SealsFrom})
	}
	for _, r := range d.Revoked() {
		if r.At.After(r.SealsFrom) {
			begins = append(begins, endOfSealing{r.ID, r.SealsFrom})
		}
	}
	slices.SortStableFunc(begins, func(a, b endOfSealing) int { return a.at.Compare(b.at) })
	ends := make([]endOfSealing, max(len(s)-1, 0))
	next := 0
	for i := range ends {
		for begins[next].by != s[i].ID {
			next++
		}
		ends[i] = begins[next+1]
	}
	return ends
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

// Around returns the last date in the schedule that is not after t, and the first date after
// t. A result is zero if there is no such date.
func (s Schedule) Around(t time.Time) (since, until time.Time) {
	for _, k := range s {
		for _, date := range []time.Time{k.SealsFrom, k.OpensUntil} {
			switch {
			case date.IsZero():
			case !date.After(t) && date.After(since):
				since = date
			case date.After(t) && (until.IsZero() || date.Before(until)):
				until = date
			}
		}
	}
	return since, until
}
