package mcpseal

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
)

// Keys and rings print as their ids under every verb and in every log. Where a
// printer cannot call these methods (an unexported field of another struct),
// it finds pointers and stops there.

// String names the key without its secret.
func (k Key) String() string {
	if k.material == nil {
		return "mcpseal.Key(none)"
	}
	return "mcpseal.Key(" + k.material.id.String() + ")"
}

// GoString is String: %#v shows no secret either.
func (k Key) GoString() string { return k.String() }

// Format writes String under every verb.
func (k Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// LogValue is String, for slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText is String: an encoder writes the key's name, not the key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// String names the ring's size and its sealing key.
func (r Ring) String() string {
	if r.keys == nil {
		return "mcpseal.Ring(empty)"
	}
	return "mcpseal.Ring(" + strconv.Itoa(len(r.keys.ids)) + " keys, " + r.keys.ids[0].String() + " seals)"
}

// GoString is String: %#v shows no secret either.
func (r Ring) GoString() string { return r.String() }

// Format writes String under every verb.
func (r Ring) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) }

// LogValue is String, for slog.
func (r Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText is String: an encoder writes the ring's name, not its keys.
func (r Ring) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
