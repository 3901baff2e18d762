package otelseal

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// ObserveKeys updates the metrics that describe keys. Pass it to keys.Options.Observer, which calls
// it for each event.
func (o *Observer) ObserveKeys(e keys.Event) {
	o.files.keep(&e)
	ctx := context.Background()
	o.lateKeys.Add(ctx, int64(len(e.Late))) // adding 0 makes the counter visible before the first late key
	o.revokedKeys.Add(ctx, int64(len(e.Removed)))
}

// files holds the last event of each key file. A file without problems may cause no event for
// months, so each time metrics are collected, the gauges report the file's last event.
type files struct {
	opening, unusable, sealingSince, nextChange metric.Int64ObservableGauge

	mu   sync.Mutex
	last map[string]file // the key of the map is the file's path
}

type file struct {
	seals    tripseal.KeyID
	since    time.Time // when this process began to seal with that key
	opens    int
	unusable bool
	next     time.Time
}

func (f *files) keep(e *keys.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = make(map[string]file)
	}
	now := file{e.Seals, time.Now(), len(e.Opens), e.Err != nil, e.Next}
	if before, ok := f.last[e.Path]; ok && before.seals == e.Seals {
		now.since = before.since
	}
	f.last[e.Path] = now
}

// collect reports the gauges over all files: how many keys open tokens, how many files cannot
// be used, when a sealing key was last replaced, and the next time at which a key begins to
// seal or stops opening tokens.
func (f *files) collect(to metric.Observer) {
	f.mu.Lock()
	var all file
	unusable, known := 0, len(f.last) > 0
	for _, one := range f.last {
		all.opens += one.opens
		if one.unusable {
			unusable++
		}
		if one.since.After(all.since) {
			all.since = one.since
		}
		if !one.next.IsZero() && (all.next.IsZero() || one.next.Before(all.next)) {
			all.next = one.next
		}
	}
	f.mu.Unlock()
	if !known {
		return
	}
	to.ObserveInt64(f.opening, int64(all.opens))
	to.ObserveInt64(f.unusable, int64(unusable))
	to.ObserveInt64(f.sealingSince, all.since.Unix())
	if !all.next.IsZero() {
		to.ObserveInt64(f.nextChange, all.next.Unix())
	}
}
