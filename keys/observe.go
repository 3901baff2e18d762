package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// Event says that the keys in use changed, or that a [File] became unusable or usable
// again. [Options.Observer] gets it, for metrics and alarms.
type Event struct {
	Path  string           // the path that was given to OpenFile
	Err   error            // why the file cannot be used, so that its last usable version stays in use; or nil
	Seals tripseal.KeyID   // the key that seals tokens now
	Opens []tripseal.KeyID // all keys that open tokens now
	// Removed has the keys that left the file while they still opened tokens.
	Removed []tripseal.KeyID
	// Late has the keys that should already have been sealing when this replica got the file
	// with them. Until then, the replica sealed with an older key.
	Late []tripseal.KeyID
	Next time.Time // when a key begins to seal or stops opening next, or zero
}

// remindEvery is how often a file that stays unusable is reported again.
const remindEvery = 10 * time.Minute

// reported holds what was last reported to the log and the observer.
type reported struct {
	ring    *datedRing
	err     string
	at      time.Time // when the error in the field err was reported
	exposed bool
}

// report tells the log and the observer what changed since the last call. The parameter err
// says why the file cannot be used; nil means that it can.
func (f *File) report(err error) {
	if f.current.Load() == nil {
		return // the first load failed: OpenFile returns the error, so it need not be reported
	}
	r, p, now := &f.reported, f.now(), time.Now()
	e := Event{Path: f.path, Err: err, Opens: p.ring.IDs(), Next: p.until}
	if len(e.Opens) > 0 {
		e.Seals = e.Opens[0]
	}
	news := p != r.ring
	switch {
	case err != nil && (err.Error() != r.err || now.Sub(r.at) >= remindEvery):
		r.err, r.at, news = err.Error(), now, true
		f.log(slog.LevelError, "keys: the file cannot be used, the last good one stays in use",
			slog.String("cause", errors.Unwrap(err).Error()))
	case err == nil && r.err != "":
		r.err, news = "", true
		f.log(slog.LevelInfo, "keys: the file is good again")
	}
	mode, exposed := keyfile.Exposed(f.path)
	if exposed && !r.exposed {
		f.log(slog.LevelWarn, "keys: others can reach a file with secrets: chmod 600 it",
			slog.String("mode", fmt.Sprintf("%04o", mode)))
	}
	r.exposed = exposed
	if p != r.ring {
		f.reportRing(&e, r.ring, p)
		r.ring = p
	}
	if news && f.options.Observer != nil {
		guard.Quietly(func() { f.options.Observer(e) })
	}
}

// reportRing tells the log which keys are in use now. It adds to the event which keys a new version
// of the file took away, and which arrived too late.
func (f *File) reportRing(e *Event, before, p *datedRing) {
	if before != nil && before.schedule != p.schedule {
		now := time.Now()
		for _, k := range before.schedule.keys {
			if p.schedule.document.Find(k.ID) == nil && k.Opens(now) {
				e.Removed = append(e.Removed, k.ID)
			}
		}
		for _, k := range p.schedule.keys {
			if before.schedule.document.Find(k.ID) == nil && k.Opens(now) && !now.Before(k.SealsFrom) {
				e.Late = append(e.Late, k.ID)
			}
		}
	}
	if len(e.Removed) > 0 {
		f.log(slog.LevelWarn, "keys: keys left the file, their tokens no longer open", idsAttr("keys", e.Removed))
	}
	if len(e.Late) > 0 {
		f.log(slog.LevelWarn, "keys: a key arrived after it should have begun to seal: "+
			"bring the file to every replica in time, or tokens are rejected", idsAttr("keys", e.Late))
	}
	attrs := []slog.Attr{slog.String("seals", e.Seals.String()), idsAttr("opens", e.Opens)}
	if !e.Next.IsZero() {
		attrs = append(attrs, slog.Time("next", e.Next))
	}
	f.log(slog.LevelInfo, "keys: in use", attrs...)
}

func idsAttr(name string, ids []tripseal.KeyID) slog.Attr {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return slog.Any(name, texts)
}

// log writes a record to the log, with the file's path. It ignores a panic of the log's handler.
func (f *File) log(level slog.Level, message string, attrs ...slog.Attr) {
	guard.Log(context.Background(), f.options.Logger, level, message, append(attrs, slog.String("file", f.path))...)
}
