// Package leaky is an MCP server for the tests of the probe. By default it is secure. Each
// hole that is switched on removes exactly one check. Search the source for the name of a hole to
// see the check that it removes.
//
// The server speaks only protocol revision 2026-07-28. It is for tests: never make it
// reachable from another machine.
package leaky

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// holes are the checks that a server can leave out. The comments say what each hole means.
var holes = []string{
	"unsigned-prefix",     // Any three characters are taken in place of the prefix of a state.
	"short-mac",           // A state is accepted if its authentication tag is cut short or empty.
	"suffix-ignored",      // A part after a state, set off by a point or a hyphen, is dropped.
	"lenient-base64",      // A state is accepted in other spellings of its base64.
	"coerced-types",       // An array or an object that holds only the state is taken for the state.
	"debug-state",         // A few short texts, left over from debugging, count as a valid state.
	"empty-unchecked",     // An empty state counts as valid.
	"signed-plaintext",    // A client can read the state, but not change it.
	"alg-none",            // A state whose header names the algorithm none needs no signature.
	"stripping",           // Answers count without a state.
	"later-answers",       // Answers to questions that were not asked yet count.
	"any-key",             // The only answer counts, whatever its key is.
	"any-kind",            // An answer of another kind counts as acceptance.
	"null-answers",        // An answer that is null, or has a null in it, counts as acceptance.
	"shared-tools",        // The state of one tool, prompt or resource fits every other.
	"unbound-arguments",   // A state fits any arguments.
	"subset-arguments",    // A state fits arguments of which some were left out.
	"raw-digest",          // A state fits only the text of the arguments, so honest clients are rejected.
	"floats",              // A state fits all arguments whose numbers are equal as float64.
	"folded-arguments",    // A state fits all arguments that differ only in case and width of letters.
	"replaced-utf8",       // The check replaces invalid UTF-8 and lone surrogates by U+FFFD, and the handler does not.
	"first-member",        // Of duplicate members the first is checked, but the handler reads the last.
	"case-blind",          // The handler ignores the case of members' names, but the check does not.
	"version-downgrade",   // With another protocol version, or none, the state is not checked.
	"headers-unchecked",   // The headers Mcp-Method and Mcp-Name may contradict the message.
	"any-method",          // A tool runs unchecked if its call has a method that carries no state.
	"shared-users",        // The state of one user fits every other user.
	"no-expiry",           // A state never expires.
	"reusable",            // A state can be used again.
	"racy-use",            // A state can be used several times at the same moment, but not again later.
	"use-by-answer",       // A state can be used again with other answers.
	"no-limits",           // A message that is too large or too deep kills the server.
	"cursor-prefix",       // Any three characters are taken in place of the prefix of a cursor.
	"cursor-numbers",      // A plain number is taken as a cursor.
	"cursor-shared-lists", // The cursor of one list, or of the paged tool, fits every other.
	"cursor-shared-users", // The cursor of one user fits every other user.
	"one-token",           // A cursor is taken as a state, and a state as a cursor.
	"oracle",              // The error says which check failed.
	"echo",                // The error repeats the state.
	"untyped",             // The results of calls have no resultType, so clients cannot read them.
	"undeclared",          // The server asks questions that the client did not declare it can answer.
	"plaintext",           // The state is readable text that the server trusts.
	"base64-json",         // The state is JSON in base64 that the server trusts.
	"hmac-unbound",        // The state is signed, but bound to nothing, and can be used again.
	"unsigned-cursor",     // The cursor is the offset in base64.
}

// Holes returns the names of all holes.
func Holes() []string { return slices.Clone(holes) }

// A Server is an http.Handler. Its method Serve serves stdio. Make a Server with New, and set
// its fields before it serves. It holds at most one of the holes that change the form of the state: short-mac,
// signed-plaintext, alg-none, plaintext, base64-json and hmac-unbound.
type Server struct {
	Now   func() time.Time // returns the time, maybe concurrently; nil means time.Now
	Pause func()           // called before a use is recorded, if the hole racy-use is switched on

	open   map[string]bool // the names of the holes that are switched on
	aead   cipher.AEAD
	macKey [32]byte
	dead   atomic.Bool
	used   sync.Map // the ids of the states that were used
}

// New makes a server with these holes.
func New(names ...string) (*Server, error) {
	s := &Server{Now: time.Now, Pause: func() {}, open: map[string]bool{}}
	for _, name := range names {
		if !slices.Contains(holes, name) {
			return nil, fmt.Errorf("leaky: there is no hole %q", name)
		}
		s.open[name] = true
	}
	var key [32]byte
	rand.Read(key[:])
	rand.Read(s.macKey[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	s.aead, err = cipher.NewGCMWithRandomNonce(block)
	return s, err
}

func (s *Server) hole(name string) bool { return s.open[name] }

// lifetime is how long states and cursors live.
const lifetime = 10 * time.Minute
