package keys

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tripseal/tripseal/internal/guard"
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
	// scheme. Nil means that the file has no wrapped secrets.
	Unwrap []Unwrapper
	// Logger gets a record when the keys in use change, when the file becomes unusable or
	// usable again, and when other users can read or change the file. Nil means
	// slog.Default().
	Logger *slog.Logger
	// Observer gets an event, for metrics, when the keys in use change, and when the file
	// becomes unusable or usable again. It must not call any method of the [File] except Ring,
	// and must not make a boundary with the File. Nil means no observer.
	Observer func(Event)
}

const defaultEvery = 2 * time.Second

func (o *Options) setDefaults() error {
	for _, field := range []struct {
		name                 string
		value                *time.Duration
		otherwise, low, high time.Duration
	}{
		{"LongestTTL", &o.LongestTTL, keyfile.UsualTTL, time.Millisecond, keyfile.MaxTTL},
		{"Skew", &o.Skew, keyfile.UsualSkew, time.Millisecond, keyfile.MaxSkew},
		{"Every", &o.Every, defaultEvery, time.Millisecond, time.Hour},
	} {
		if *field.value == 0 {
			*field.value = field.otherwise
		}
		if *field.value < field.low || *field.value > field.high {
			return fmt.Errorf("keys: Options.%s is %v, not between %v and %v", field.name, *field.value, field.low, field.high)
		}
	}
	o.Unwrap = slices.Clone(o.Unwrap)
	schemes := make(map[string]bool)
	for i, u := range o.Unwrap {
		if u == nil {
			return fmt.Errorf("keys: Options.Unwrap[%d] is nil", i)
		}
		var scheme string
		if panicked := guard.Call(func() error { scheme = u.Scheme(); return nil }); panicked != nil {
			return fmt.Errorf("keys: Options.Unwrap[%d] cannot be used: %w", i, panicked)
		}
		if !keyfile.ValidScheme(scheme) {
			return fmt.Errorf("keys: the scheme of Options.Unwrap[%d] is not 1 to 32 lower-case letters, digits and hyphens", i)
		}
		if schemes[scheme] {
			return fmt.Errorf("keys: two of Options.Unwrap have the scheme %s: use one unwrapper that can do what both do", scheme)
		}
		schemes[scheme] = true
	}
	return nil
}

func (o *Options) room() keyfile.Room { return keyfile.Room{TTL: o.LongestTTL, Skew: o.Skew} }
