package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// File is a source of keys that follows a file. It checks the keys' dates for every
// token, even if the file can no longer be read.
type File struct {
	path    string
	text    func() ([]byte, error) // reads the file
	options Options

	current atomic.Pointer[datedRing]
	turn    sync.Mutex // held to replace current

	loading    sync.Mutex                 // held to read the file; guards what follows
	good       fileSum                    // the sum of the text in use
	since      time.Time                  // when that text came into use
	sealed     lastSeals                  // keys that this replica must open with, whatever the file says
	revoked    map[mcpseal.KeyID]struct{} // revoked keys, which a later file must not bring back
	unwrapping *unwrapping
	reported   reported

	ctx     context.Context // canceled by Close
	stop    context.CancelFunc
	stopped chan struct{}
}

// OpenFile reads the file, which must be good now, and follows it until Close. If
// the file later cannot be used, its last good version stays in use. Log and observer
// report that, and also when the file is good again. Nil options mean the zero value.
func OpenFile(path string, options *Options) (*File, error) {
	f, err := newFile(path, func() ([]byte, error) { return keyfile.ReadText(path) }, options)
	if err != nil {
		return nil, err
	}
	if err := f.Reload(); err != nil {
		f.stop()
		return nil, err
	}
	go f.follow()
	return f, nil
}

func newFile(path string, text func() ([]byte, error), options *Options) (*File, error) {
	f := &File{path: path, text: text, sealed: make(lastSeals), revoked: make(map[mcpseal.KeyID]struct{}), stopped: make(chan struct{})}
	if options != nil {
		f.options = *options
	}
	if err := f.options.setDefaults(); err != nil {
		return nil, err
	}
	f.unwrapping = newUnwrapping(f.options.Unwrap)
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// Ring implements [mcpseal.KeySource].
func (f *File) Ring() *mcpseal.Ring {
	now := time.Now()
	p := f.current.Load()
	if p.covers(now) {
		return p.ring
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	if p = f.current.Load(); !p.covers(now) {
		p = p.schedule.ringAt(now)
		f.current.Store(p)
	}
	return p.ring
}

// Reload reads the file now, for example on a signal. An error says why the file
// cannot be used; its last good version then stays in use.
func (f *File) Reload() error { return f.refresh(true) }

// refresh loads the file and reports the result. With force it tries again even if
// the secrets could not be unwrapped a moment ago.
func (f *File) refresh(force bool) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	err := f.load(force)
	if f.ctx.Err() == nil {
		f.report(err)
	}
	return err
}

// Outlast makes sure that keys open for as long as tokens with this TTL live. A
// boundary calls it with its longest TTL. It returns an error if a key in the file
// in use ends earlier.
func (f *File) Outlast(ttl time.Duration) error {
	if ttl > keyfile.MaxTTL {
		return fmt.Errorf("keys: a TTL of %v is longer than a file of keys can allow", ttl)
	}
	f.loading.Lock()
	defer f.loading.Unlock()
	room := f.options.room()
	room.TTL = max(room.TTL, ttl)
	if err := f.current.Load().schedule.document.Check(time.Now(), room); err != nil {
		return f.refused(err)
	}
	f.options.LongestTTL = room.TTL
	return nil
}

// Close stops following the file. The keys stay usable until they expire.
func (f *File) Close() error {
	f.stop()
	<-f.stopped
	return nil
}

func (f *File) follow() {
	defer close(f.stopped)
	ticker := time.NewTicker(f.options.Every)
	defer ticker.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-ticker.C:
			f.refresh(false) // the error is dropped here: log and observer get it
		}
	}
}

// refused returns a problem with the file as an error of this package.
func (f *File) refused(err error) error {
	return &fileError{f.path, err}
}

type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("keys: %q: %v", e.path, e.cause()) }

// cause returns the problem without the path, and how to repair it.
func (e *fileError) cause() string {
	var short *keyfile.TooShort
	if errors.As(e.err, &short) {
		return e.err.Error() + "; run: " + short.Repair(e.path)
	}
	return e.err.Error()
}

func (e *fileError) Unwrap() error { return e.err }
