package keys

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// Event is something that happened to a [File].
type Event struct {
	Path string
	// Err says why the file cannot be used as it is; the last good one is then
	// in use. Nil when the file is in use.
	Err error
	// Seals is the key that seals now, and Opens all that open.
	Seals mcpseal.KeyID
	Opens []mcpseal.KeyID
	// Removed are keys that were to open for longer and left the file.
	Removed []mcpseal.KeyID
	// Next is when the next key begins to seal or stops to open; zero if that
	// is not planned.
	Next time.Time
}

// remindEvery is how often a file that stays bad is mentioned again.
const remindEvery = 10 * time.Minute

// report is what log and observer were told last.
type report struct {
	phase  *phase
	err    string
	told   time.Time // when err was told
	mode   os.FileMode
	warned os.FileMode // the mode that was warned about
}

// tell says what changed since it was last called, and does not repeat itself.
func (f *File) tell(err error) {
	r := &f.report
	now := time.Now()
	if f.phase.Load() == nil {
		return // OpenFile returns the error
	}
	f.Ring() // turns the phase if its time has come
	p := f.phase.Load()
	if r.mode != r.warned {
		if keyfile.TooOpen(r.mode) {
			f.log(slog.LevelWarn, "keys: others can read or change the file of keys: chmod 600 it", slog.String("mode", fmt.Sprintf("%04o", r.mode.Perm())))
		}
		r.warned = r.mode
	}
	switch {
	case err != nil && (err.Error() != r.err || now.Sub(r.told) >= remindEvery):
		r.err, r.told = err.Error(), now
		cause := err
		if e, ok := err.(*fileError); ok {
			cause = e.err
		}
		f.log(slog.LevelError, "keys: the file cannot be used, the last good one stays in use", slog.String("cause", cause.Error()))
		f.observe(f.event(p, nil, err))
	case err == nil && r.err != "":
		r.err = ""
		f.log(slog.LevelInfo, "keys: the file is good again")
		if p == r.phase {
			f.observe(f.event(p, nil, nil))
		}
	}
	if p != r.phase {
		f.tellPhase(r.phase, p, err)
		r.phase = p
	}
}

// tellPhase says which keys are in use now, and which left early.
func (f *File) tellPhase(before, p *phase, err error) {
	var removed []mcpseal.KeyID
	if before != nil && before.schedule != p.schedule {
		for _, k := range before.schedule.keys {
			if _, still := p.schedule.secrets[k.ID]; !still && k.Opens(time.Now()) {
				removed = append(removed, k.ID)
			}
		}
	}
	e := f.event(p, removed, err)
	attrs := []slog.Attr{slog.String("seals", e.Seals.String()), slog.Any("opens", names(e.Opens))}
	if !e.Next.IsZero() {
		attrs = append(attrs, slog.Time("next", e.Next))
	}
	if len(removed) > 0 {
		f.log(slog.LevelWarn, "keys: keys left the file before their time, their tokens no longer open", slog.Any("keys", names(removed)))
	}
	f.log(slog.LevelInfo, "keys: in use", attrs...)
	f.observe(e)
}

func (f *File) event(p *phase, removed []mcpseal.KeyID, err error) Event {
	e := Event{Path: f.path, Err: err, Opens: p.ring.IDs(), Removed: removed, Next: p.until}
	if len(e.Opens) > 0 {
		e.Seals = e.Opens[0]
	}
	return e
}

func names(ids []mcpseal.KeyID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	slices.Sort(all)
	return all
}

// log and observe change nothing when their receiver panics.
func (f *File) log(level slog.Level, message string, attrs ...slog.Attr) {
	callback.Quietly(func() {
		cmp.Or(f.options.Logger, slog.Default()).LogAttrs(context.Background(), level, message, append(attrs, slog.String("file", f.path))...)
	})
}

func (f *File) observe(e Event) {
	if f.options.Observer != nil {
		callback.Quietly(func() { f.options.Observer(e) })
	}
}
