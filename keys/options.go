package keys

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/tripseal/tripseal/internal/keyfile"
)

// Options changes how [OpenFile] treats its file. The zero value suits most services.
type Options struct {
	// LongestTTL is the longest lifetime of a token or cursor sealed with these keys. A key
	// must still open tokens for at least LongestTTL plus twice Skew after the next key begins
	// to seal. A file with a key that stops earlier is refused. 0 means 1 hour, the default
	// lifetime of cursors. A boundary with a longer TTL or URLTTL raises LongestTTL by itself.
	LongestTTL time.Duration
	// Skew is how far a replica's clock may be off. 0 means 1 minute.
	Skew time.Duration
	// Every is how often the file is checked for changes. 0 means 2 seconds.
	Every time.Duration
	// Unwrap has the unwrappers that decrypt wrapped (encrypted) secrets, one for each
	// scheme. With an Unwrapper, a file with a readable secret is refused, because whoever
	// can only write the file could have put a key of their own there. Nil means that the
	// file has no wrapped secrets.
	Unwrap []Unwrapper
	// Logger gets a record when the keys in use change, when the file becomes unusable or
	// usable again, and when other users can read the file. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets an event, for metrics, when the keys in use change, and when the file
	// becomes unusable or usable again. It must not call any method of the [File] except Ring,
	// and must not make a boundary with the File. Nil means no observer.
	Observer func(Event)
}

func (o *Options) setDefaults() error {
	o.LongestTTL = cmp.Or(o.LongestTTL, keyfile.UsualTTL)
	o.Skew = cmp.Or(o.Skew, keyfile.UsualSkew)
	o.Every = cmp.Or(o.Every, 2*time.Second)
	if min(o.LongestTTL, o.Skew, o.Every) < time.Millisecond ||
		o.LongestTTL > keyfile.MaxTTL || max(o.Skew, o.Every) > keyfile.MaxSkew {
		return fmt.Errorf("keys: Options has LongestTTL %v, Skew %v and Every %v: each at least 1ms, at most %v, %v and %v",
			o.LongestTTL, o.Skew, o.Every, keyfile.MaxTTL, keyfile.MaxSkew, keyfile.MaxSkew)
	}
	return nil
}

func (o *Options) room() keyfile.Room { return keyfile.Room{TTL: o.LongestTTL, Skew: o.Skew} }
