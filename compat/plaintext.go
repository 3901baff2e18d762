package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal"
)

// maxPlaintext is how long a process may leave states unsealed, counted from its start.
const maxPlaintext = 24 * time.Hour

var started = time.Now()

// Plaintext returns a format that does not protect states: its tokens are the states
// themselves. Use it only for the two roll-outs that bring sealed tokens to a fleet whose
// states are unsealed today. docs/migration.md describes them.
//
// Nothing protects such a state: anybody can read, write, repeat and pass it on, and every answer
// that a client sends reaches the handler. So you must waive all claims by name. The format serves
// only calls of the given tools. Single use must be off for these tools, and they must not use
// package elicit. The parameter until is the time when the format ends, at most 24 hours after the
// start of this process. Set it to a fixed date: a time that is computed at the start would move
// with every restart. When the format has ended, unsealed states are rejected as expired, and the
// format seals nothing.
//
// Sealing fails if a state is empty, or if it begins with the prefix of a native token or
// cursor, or of another format that the boundary accepts.
func Plaintext(tools []string, until time.Time) (tripseal.Format, error) {
	return newPlaintext(tools, until, started)
}

func newPlaintext(tools []string, until, started time.Time) (tripseal.Format, error) {
	if len(tools) == 0 || slices.Contains(tools, "") {
		return nil, errors.New("compat: name the tools whose states may be unsealed")
	}
	if until.IsZero() {
		return nil, errors.New("compat: name the date until which states may be unsealed")
	}
	f := &plaintextFormat{tools: slices.Clone(tools), until: until.Round(0), made: time.Now(), left: time.Until(until)}
	if most := maxPlaintext - f.made.Sub(started); f.left > most {
		return nil, fmt.Errorf("compat: states may be unsealed for at most %v after the start of the process, so until %s at the latest, not until %s; "+
			"name a date that is soon after the second roll-out", maxPlaintext, f.made.Add(most).Format(time.RFC3339), until.Format(time.RFC3339))
	}
	return f, nil
}

type plaintextFormat struct {
	tools []string
	until time.Time     // when the format ends, by the wall clock
	made  time.Time     // when the format was made; compared by the monotonic clock, which nobody can set back
	left  time.Duration // how long the format lasts (until - made)

	// told is true after a boundary has called Unsealed. Until then the format opens and seals
	// nothing. Otherwise, a wrapper without the method Unsealed could make the boundary believe
	// that states are sealed.
	told atomic.Bool
}

func (f *plaintextFormat) Prefix() string             { return "" }
func (f *plaintextFormat) Carries() tripseal.ClaimSet { return 0 }

// Unsealed marks a format whose tokens anybody can write: see [tripseal.Format]. It
// returns the only tools that the format serves, and the time when the format ends.
func (f *plaintextFormat) Unsealed() (tools []string, until time.Time) {
	f.told.Store(true)
	return slices.Clone(f.tools), f.until
}

// Digest returns nil, because an unsealed state is not bound to the arguments.
func (f *plaintextFormat) Digest(*tripseal.Binding) ([]byte, error) { return nil, nil }

const errPlaintextHidden = tripseal.PlainError("unsealed states are hidden from the boundary: the format that wraps compat.Plaintext must also have the method Unsealed of compat.Plaintext")

const errPlaintextOver = tripseal.PlainError("the time for unsealed states is over: seal natively, as the second roll-out does")

func (f *plaintextFormat) Seal(_ context.Context, binding *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	switch {
	case !f.told.Load():
		return "", errPlaintextHidden
	case !f.serves(binding):
		return "", tripseal.PlainError("unsealed states are allowed only for the tools that compat.Plaintext names")
	case claims.State == "":
		return "", tripseal.PlainError("an unsealed state must not be empty, because the client would send nothing back: have the tool write one")
	case f.hasEnded():
		return "", errPlaintextOver
	}
	return claims.State, nil
}

func (f *plaintextFormat) Open(_ context.Context, binding *tripseal.Binding, token string) (tripseal.Claims, error) {
	switch {
	case !f.told.Load():
		return tripseal.Claims{}, errPlaintextHidden
	case !f.serves(binding):
		return tripseal.Claims{}, tripseal.ReasonRequest
	case token == "":
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	claims := tripseal.Claims{State: token, HasState: true}
	if !f.hasEnded() {
		claims.Expires = f.until.UnixMilli()
	}
	return claims, nil // Expires is 0 if the format has ended, so the boundary rejects the token as expired
}

func (f *plaintextFormat) serves(binding *tripseal.Binding) bool {
	return binding.Method == "tools/call" && slices.Contains(f.tools, binding.Target)
}

// hasEnded reports whether the format has ended, by the wall clock or by the monotonic clock.
func (f *plaintextFormat) hasEnded() bool {
	now := time.Now()
	return !(now.Before(f.until) && now.Sub(f.made) < f.left)
}
