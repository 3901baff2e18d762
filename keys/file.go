package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// File is a source of keys that reads a file and reloads it when it changes. It checks the
// dates of the keys for every token, even if the file can no longer be read. Use a File
// as tripseal.Config.Keys if several processes share keys.
type File struct {
	path    string
	text    func() ([]byte, error) // reads the file
	options Options

	current atomic.Pointer[datedRing]
	turn    sync.Mutex // held during each write to f.current

	loading    sync.Mutex                  // held while the file is loaded; guards the next six fields
	good       fileSum                     // the hash of the last usable version of the file
	since      time.Time                   // when the last usable version of the file was loaded
	sealed     lastSeals                   // the keys with which this process sealed; they still open tokens if the file drops them
	revoked    map[tripseal.KeyID]struct{} // revoked keys, which a later file must not bring back
	unwrapping *unwrapping
	reported   reported

	ctx     context.Context // ends when Close is called
	stop    context.CancelFunc
	stopped chan struct{}
}

// OpenFile reads a file of keys, and reloads it when it changes, until Close is called. It
// returns an error if the file cannot be used now. If the file becomes unusable later, its
// last usable version stays in use. The log and the observer are told when the file becomes
// unusable, and when it is usable again. If options is nil, all options have their defaults.
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
	f := &File{path: path, text: text, sealed: make(lastSeals), revoked: make(map[tripseal.KeyID]struct{}), stopped: make(chan struct{})}
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

// Ring returns a ring of the keys that seal and open tokens now. It implements
// [tripseal.KeySource]. A boundary calls Ring for every token; call it yourself to see
// which keys are in use.
func (f *File) Ring() *tripseal.Ring {
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

// Reload reads the file now, for example when the process gets a signal. It returns an error
// if the file cannot be used. In that case, the last usable version of the file stays in use.
func (f *File) Reload() error { return f.refresh(true) }

// refresh loads the file and reports the result to the log and the observer. If the secrets
// could not be unwrapped a moment ago, it tries to unwrap them again only if the parameter
// force is true.
func (f *File) refresh(force bool) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	err := f.load(force)
	if f.ctx.Err() == nil {
		f.report(err)
	}
	return err
}

// Outlast makes sure that each key opens tokens until its last token with this TTL expires. It
// returns an error if a key in the file stops opening tokens earlier. If Outlast returns nil,
// every later version of the file must allow this TTL too. A boundary calls Outlast with its
// longest TTL. Call it yourself only for tokens that you seal without a boundary.
func (f *File) Outlast(ttl time.Duration) error {
	if ttl > keyfile.MaxTTL {
		return fmt.Errorf("keys: a TTL of %v is longer than a file of keys can allow", ttl)
	}
	f.loading.Lock()
	defer f.loading.Unlock()
	room := f.options.room()
	room.TTL = max(room.TTL, ttl)
	if err := f.current.Load().schedule.document.Check(time.Now(), room); err != nil {
		return f.withPath(err)
	}
	f.options.LongestTTL = room.TTL
	return nil
}

// Close stops reloading the file. The loaded keys stay usable until they expire. Call it
// when the server stops.
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
			f.refresh(false) // the error can be ignored, because refresh reports it to the log and the observer
		}
	}
}

func (f *File) withPath(err error) error {
	return &fileError{f.path, err}
}

type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("keys: %q: %v", e.path, e.cause()) }

// cause returns the text of the error without the file's path. If a command can repair the
// file, the text ends with that command.
func (e *fileError) cause() string {
	var short *keyfile.TooShort
	if errors.As(e.err, &short) {
		return e.err.Error() + "; run: " + short.Repair(e.path)
	}
	return e.err.Error()
}

func (e *fileError) Unwrap() error { return e.err }
