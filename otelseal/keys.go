package otelseal

import (
	"context"
	"sync"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// ObserveKeys updates the metrics that describe keys. Pass it to keys.Options.Observer, which calls
// it for each event.
func (o *Observer) ObserveKeys(e keys.Event) {
	o.files.keep(e)
	ctx := context.Background()
	o.lateKeys.Add(ctx, int64(len(e.Late))) // adding 0 makes the counter visible before the first late key
	o.revokedKeys.Add(ctx, int64(len(e.Removed)))
}

// files holds the last event of each file of keys. A file without problems may cause no event for
// months, so each time metrics are collected, the gauges report the file's last event.
type files struct {
	mu   sync.Mutex
	last map[string]file // by the path of the file
}

type file struct {
	opening, unusable int
	seals             tripseal.KeyID
	since             time.Time // when this process began to seal with the present key
	next              time.Time
}

func (f *files) keep(e keys.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := file{opening: len(e.Opens), seals: e.Seals, since: time.Now(), next: e.Next}
	if e.Err != nil {
		now.unusable = 1
	}
	if before, ok := f.last[e.Path]; ok && before.seals == e.Seals {
		now.since = before.since
	}
	f.last[e.Path] = now
}

// sum returns the sums over all files, the latest since and the earliest next.
func (f *files) sum() (all file, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.last {
		all.opening += one.opening
		all.unusable += one.unusable
		if one.since.After(all.since) {
			all.since = one.since
		}
		if all.next.IsZero() || !one.next.IsZero() && one.next.Before(all.next) {
			all.next = one.next
		}
	}
	return all, len(f.last) > 0
}
