package keys

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// Options changes how [OpenFile] treats its file. The zero value suits most.
type Options struct {
	// LongestTTL is the longest that a token or cursor under these keys lives. A
	// file in which a key stops opening sooner than that, and twice Skew, after
	// its successor began to seal is refused. 0 means 1 hour, what cursors
	// live; a boundary whose TTL or URLTTL is longer raises it by itself.
	LongestTTL time.Duration
	// Skew is how far the clocks of the replicas may be off. 0 means 1 minute.
	Skew time.Duration
	// Every is how often the file is looked at. 0 means 2 seconds.
	Every time.Duration
	// Unwrap decrypts secrets that are wrapped. Nil means that none is.
	Unwrap []Unwrapper
	// Logger gets what happens to the file. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets the same, for metrics. It must not call Reload or Close.
	// Nil means nobody does.
	Observer func(Event)
}

const (
	defaultLongestTTL = time.Hour
	defaultSkew       = time.Minute
	defaultEvery      = 2 * time.Second

	maxTTL = 10 * 365 * 24 * time.Hour
)

func (o *Options) setDefaults() error {
	for _, field := range []struct {
		name                 string
		value                *time.Duration
		otherwise, low, high time.Duration
	}{
		{"LongestTTL", &o.LongestTTL, defaultLongestTTL, time.Millisecond, maxTTL},
		{"Skew", &o.Skew, defaultSkew, time.Millisecond, time.Hour},
		{"Every", &o.Every, defaultEvery, time.Millisecond, time.Hour},
	} {
		if *field.value == 0 {
			*field.value = field.otherwise
		}
		if *field.value < field.low || *field.value > field.high {
			return fmt.Errorf("keys: Options.%s is %v, not between %v and %v", field.name, *field.value, field.low, field.high)
		}
	}
	for i, u := range o.Unwrap {
		if u == nil {
			return fmt.Errorf("keys: Options.Unwrap[%d] is nil", i)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

func (o *Options) room() keyfile.Room { return keyfile.Room{TTL: o.LongestTTL, Skew: o.Skew} }

// unwrappers are the same under the name that the file's reader has for them.
func (o *Options) unwrappers() []keyfile.Unwrapper {
	all := make([]keyfile.Unwrapper, len(o.Unwrap))
	for i, u := range o.Unwrap {
		all[i] = u
	}
	return all
}
