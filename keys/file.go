package keys

import (
	"context"
	"crypto/sha256"
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
	options Options
	current atomic.Pointer[datedRing]
	turn    sync.Mutex // held during each write to f.current

	loading  sync.Mutex        // held while the file is loaded; guards options.LongestTTL and the fields below
	sum      [sha256.Size]byte // of the text of the version in use
	unwraps  unwraps
	reported reported

	ctx     context.Context // ends when Close is called
	stop    context.CancelFunc
	stopped chan struct{}
}

// OpenFile reads a file of keys, and reloads it when it changes, until Close is called. It
// returns an error if the file cannot be used now. If the file becomes unusable later, its
// last usable version stays in use. The log and the observer are told when the file becomes
// unusable, and when it is usable again. If options is nil, all options have their defaults.
func OpenFile(path string, options *Options) (*File, error) {
	f := &File{path: path, stopped: make(chan struct{})}
	if options != nil {
		f.options = *options
	}
	if err := f.options.setDefaults(); err != nil {
		return nil, err
	}
	if err := f.unwraps.use(f.options.Unwrap); err != nil {
		return nil, err
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	if err := f.Reload(); err != nil {
		f.stop()
		return nil, err
	}
	go f.follow()
	return f, nil
}

// Ring returns a ring of the keys that seal and open tokens now. It implements
// [tripseal.KeySource]. A boundary calls Ring for every token; call it yourself to see
// which keys are in use.
func (f *File) Ring() *tripseal.Ring { return f.now().ring }

func (f *File) now() *datedRing {
	if p := f.current.Load(); p.covers(time.Now()) {
		return p
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	p := f.current.Load()
	if now := time.Now(); !p.covers(now) {
		p = p.schedule.ringAt(now)
		f.current.Store(p)
	}
	return p
}

// Reload reads the file now, for example when the process gets a signal. It returns an error
// if the file cannot be used. In that case, the last usable version of the file stays in use.
func (f *File) Reload() error { return f.refresh(true) }

// refresh loads the file and reports the result to the log and the observer. If the secrets
// could not be unwrapped a moment ago, it tries again only if the parameter force is true.
func (f *File) refresh(force bool) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	err := f.load(force)
	if err != nil {
		err = f.withPath(err)
	}
	if f.ctx.Err() == nil {
		f.report(err)
	}
	return err
}

// load puts the file into use if its text changed. It first checks the whole file, and then swaps
// one pointer. It compares the text's hash and not the file's time and size, because those can stay
// the same when a file is edited in place.
func (f *File) load(force bool) error {
	text, err := keyfile.ReadText(f.path)
	if err != nil {
		return err
	}
	defer clear(text)
	sum := sha256.Sum256(text)
	if f.current.Load() != nil && sum == f.sum {
		return nil
	}
	document, err := keyfile.Parse(text)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := document.Check(now, f.options.room()); err != nil {
		return err
	}
	s := &schedule{document: document, keys: document.Schedule()}
	if s.secrets, err = f.unwraps.secrets(f.ctx, s.keys, now, force); err != nil {
		return err
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	f.sum = sum
	f.current.Store(s.ringAt(time.Now()))
	return nil
}

// Outlast makes sure that each key opens tokens until its last token with this TTL expires. It
// returns an error if a key in the file stops opening tokens earlier. If Outlast returns nil,
// every later version of the file must allow this TTL too. A boundary calls Outlast with its
// longest TTL. Call it yourself only for tokens that you seal without a boundary.
func (f *File) Outlast(ttl time.Duration) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	room := f.options.room().AtLeast(keyfile.Room{TTL: ttl})
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

func (f *File) withPath(err error) error { return fmt.Errorf("keys: %q: %w", f.path, err) }
