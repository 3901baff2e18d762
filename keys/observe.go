package keys

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// Event says that the keys in use changed, or that a [File] became unusable or usable
// again. [Options.Observer] gets it, for metrics and alarms.
type Event struct {
	Path string // the path that was given to OpenFile
	// Err says why the present version of the file cannot be used; the last usable version
	// stays in use. Err is nil if the present version is in use.
	Err error
	// Seals is the id of the key that seals tokens now.
	Seals tripseal.KeyID
	// Opens has the ids of all keys that open tokens now.
	Opens []tripseal.KeyID
	// Removed has the ids of keys that were revoked while they still opened tokens.
	Removed []tripseal.KeyID
	// Late has the ids of keys that arrived too late: when this replica got the file with the
	// key, the key should already have been sealing. Until then, the replica sealed with an
	// older key.
	Late []tripseal.KeyID
	// Next is the next time at which a key begins to seal or stops opening. It is the zero
	// time if there is none.
	Next time.Time
}

// remindEvery is how often a file that stays unusable is reported again.
const remindEvery = 10 * time.Minute

// reported holds what was last reported to the log and the observer.
type reported struct {
	ring    *datedRing
	err     string
	at      time.Time // when the error in the field err was reported
	exposed string
}

// report tells the log and the observer what changed since the last call. The parameter err
// says why the file cannot be used; nil means that it can. While err stays the same, it is
// reported again each time that remindEvery has passed.
func (f *File) report(err error) {
	r := &f.reported
	now := time.Now()
	if f.current.Load() == nil {
		return // the first load failed: OpenFile returns the error, so it need not be reported
	}
	f.Ring() // called because it sets f.current to the ring that is valid now
	p := f.current.Load()
	f.reportExposed()
	switch {
	case err != nil && (err.Error() != r.err || now.Sub(r.at) >= remindEvery):
		r.err, r.at = err.Error(), now
		cause := err.Error()
		if e, ok := err.(*fileError); ok {
			cause = e.cause()
		}
		f.log(slog.LevelError, "keys: the file cannot be used, the last good one stays in use", slog.String("cause", cause))
		f.observe(f.event(p, err))
	case err == nil && r.err != "":
		r.err = ""
		f.log(slog.LevelInfo, "keys: the file is good again")
		if p == r.ring {
			f.observe(f.event(p, nil))
		}
	}
	if p != r.ring {
		f.reportRing(r.ring, p, err)
		r.ring = p
	}
}

// reportExposed logs a warning if other users can read or change the file of keys, or a file
// with the secrets of an unwrapper.
func (f *File) reportExposed() {
	var all []string
	for _, path := range append([]string{f.path}, f.unwrapping.files...) {
		for _, how := range keyfile.Exposed(path, os.Geteuid()) {
			all = append(all, fmt.Sprintf("%q: %s", path, how))
		}
	}
	exposed := strings.Join(all, "; ")
	if exposed != f.reported.exposed && exposed != "" {
		f.log(slog.LevelWarn, "keys: others can reach a file with secrets", slog.String("cause", exposed))
	}
	f.reported.exposed = exposed
}

// reportRing tells the log and the observer which keys are in use now, which were revoked,
// and which arrived too late.
func (f *File) reportRing(before, p *datedRing, err error) {
	e := f.event(p, err)
	if before != nil && before.schedule != p.schedule {
		now := time.Now()
		was, _ := before.schedule.document.ByID()
		is, _ := p.schedule.document.ByID()
		for _, k := range before.schedule.keys {
			if is[k.ID] == nil && k.Opens(now) {
				e.Removed = append(e.Removed, k.ID)
			}
		}
		for _, k := range p.schedule.keys {
			if was[k.ID] == nil && k.Opens(now) && !now.Before(k.SealsFrom) {
				e.Late = append(e.Late, k.ID)
			}
		}
	}
	if len(e.Removed) > 0 {
		f.log(slog.LevelWarn, "keys: keys were revoked, their tokens no longer open", idsAttr("keys", e.Removed))
	}
	if len(e.Late) > 0 {
		f.log(slog.LevelWarn, "keys: a key arrived after it should have begun to seal: bring the file to every replica in time, or tokens are rejected",
			idsAttr("keys", e.Late))
	}
	attrs := []slog.Attr{slog.String("seals", e.Seals.String()), idsAttr("opens", e.Opens)}
	if !e.Next.IsZero() {
		attrs = append(attrs, slog.Time("next", e.Next))
	}
	f.log(slog.LevelInfo, "keys: in use", attrs...)
	f.observe(e)
}

func (f *File) event(p *datedRing, err error) Event {
	e := Event{Path: f.path, Err: err, Opens: p.ring.IDs(), Next: p.until}
	if len(e.Opens) > 0 {
		e.Seals = e.Opens[0]
	}
	return e
}

// idsAttr returns a log attribute with the first ten ids. If there are more than ten, the
// attribute also says how many there are.
func idsAttr(name string, ids []tripseal.KeyID) slog.Attr {
	const most = 10
	var all []string
	for _, id := range ids[:min(len(ids), most)] {
		all = append(all, id.String())
	}
	if len(ids) > most {
		all = append(all, fmt.Sprintf("and more, %d in all", len(ids)))
	}
	return slog.Any(name, all)
}

// log writes a record to the log, and adds the file's path. It ignores a panic of the log's
// handler.
func (f *File) log(level slog.Level, message string, attrs ...slog.Attr) {
	guard.Log(context.Background(), f.options.Logger, level, message, append(attrs, slog.String("file", f.path))...)
}

func (f *File) observe(e Event) {
	if f.options.Observer != nil {
		guard.Quietly(func() { f.options.Observer(e) })
	}
}
