// Package atd issues and opens the pagination cursors of the ATD runtime (the crate
// atd-runtime): a CBOR body with an HMAC, bound to the tool, the caller, the arguments and
// the server's session. It is for a fleet that moves between that runtime and Go. For
// anything new, package cursor is the better choice: its cursors are encrypted, bound to the
// service, and always have room for a position of 256 bytes. A client can read the cursors
// of this package: the position, and the caller's name in clear text. These cursors work at
// every service with the same key and session, whatever its tripseal.Config.Audience.
//
// The package is stricter than the ATD runtime. It accepts only the exact text that was
// issued. It refuses a cursor whose date is more than 60 seconds in the future.
// [Issuer.Open] itself checks the tool, the caller and the arguments, and checks the time
// last. Replicas that share a key accept each other's cursors, unless their Options.Session
// differs.
package atd

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

const (
	// MaxCursor is the greatest length of a cursor, in characters.
	MaxCursor = 512
	// MaxState is the greatest length of a state, in bytes. A cursor may have room for less,
	// because it also holds the names of the tool and the caller. For example, if these names
	// have 20 and 12 bytes, a state of 137 bytes fits if the page's number is at most 23.
	MaxState = 256

	defaultTTL = 5 * time.Minute
	clockSkew  = 60 * time.Second

	sessionLabel = "tripseal/atd session"
)

// Options holds the settings of an [Issuer], except its key. The zero value suits servers of one
// service that share a key.
type Options struct {
	// Session is 8 bytes. Servers with the same key and session accept each other's
	// cursors. If two services share a key, give each service its own session, for example
	// the first bytes of a SHA-256 of its host name. Nil means a session that is derived
	// from the key: all servers with the key share that session. (A server of the ATD
	// runtime makes a random session.)
	Session []byte
	// TTL is how long a cursor is valid. 0 means 5 minutes.
	TTL time.Duration
	// PlainExponents says how the digest of the arguments in a new cursor is computed. If it
	// is true, large floats are written as 1e16, as older builds of the ATD runtime do. If
	// it is false, they are written as 1e+16, as newer builds do. Cursors of both kinds are
	// accepted.
	PlainExponents bool
	// Logger gets a warning if the key is random, and a warning about what the cursors
	// of [Issuer.Cursors] do not protect. For each such cursor that is rejected or not
	// issued, it gets a record with the reason. Nil means slog.Default().
	Logger *slog.Logger
}

// Issuer issues and opens cursors. It is safe for concurrent use. Printing it does not show
// its key. Make one when the server starts. For paged tools of an adapter, use
// [Issuer.Cursors]; otherwise call Issue and Open.
type Issuer struct {
	mac     macKey
	session numbers
	ttl     uint64 // how long a cursor is valid, in seconds
	plain   bool   // the value of Options.PlainExponents
	derived bool   // true if the session is derived from the key
	logger  *slog.Logger
	warned  sync.Once
}

// NewIssuer makes an issuer. The key must have 32 bytes. If it is nil, the issuer uses the
// key that the environment variable ATD_CURSOR_SIGNING_KEY holds in base64. If that variable
// is not set, it uses a random key, which is lost when this process ends. Call NewIssuer
// once, with the key of the ATD servers.
func NewIssuer(key []byte, options Options) (*Issuer, error) {
	if options.TTL == 0 {
		options.TTL = defaultTTL
	}
	if options.TTL < time.Second {
		return nil, fmt.Errorf("atd: Options.TTL is %v, less than a second", options.TTL)
	}
	if options.Session != nil && len(options.Session) != sessionSize {
		return nil, fmt.Errorf("atd: Options.Session has %d bytes, not %d", len(options.Session), sessionSize)
	}
	key, err := findKey(key, tripseal.Logger(options.Logger))
	if err != nil {
		return nil, err
	}
	i := &Issuer{mac: newMACKey(key), ttl: uint64(options.TTL / time.Second), plain: options.PlainExponents, logger: options.Logger}
	if i.derived = options.Session == nil; i.derived {
		sum := i.mac.sum([]byte(sessionLabel))
		options.Session = sum[:sessionSize]
	}
	i.session = numbersOf(options.Session)
	return i, nil
}

// String returns a fixed text, which reveals nothing of the key. So printing an issuer is
// safe.
func (i *Issuer) String() string { return "atd.Issuer" }

// Format writes what String returns, so that no verb of package fmt shows the key.
func (i *Issuer) Format(s fmt.State, _ rune) { io.WriteString(s, i.String()) }

// Request is the call that a cursor is bound to. The cursor opens only for the same tool,
// caller and arguments. Pass a Request to Issue and Open.
type Request struct {
	Tool      string // the name of the tool
	Caller    string // "" means no caller
	Arguments []byte // the JSON text of the arguments, without the cursor; nil means {}
}

// Page is the page that a cursor leads to. Pass it to Issue; Open returns it.
type Page struct {
	Index uint32 // the page's number; the first page that a cursor leads to has number 1
	State []byte // what the tool stored, such as a position; at most [MaxState] bytes
}

// Issue returns a cursor that leads to the given page. Only the given request can open this cursor.
// The error is ErrStateTooLarge or ErrTooLarge, or says that the arguments are not JSON or that a
// name is not UTF-8. Call Issue unless the page that you return is the last.
func (i *Issuer) Issue(request Request, page Page) (string, error) {
	p, err := i.payloadOf(request, i.plain)
	if err != nil {
		return "", err
	}
	return i.issuePage(*p, page)
}

// issuePage returns the cursor that leads to the given page. In the payload p, the session and the
// fields that depend on the request are already set.
func (i *Issuer) issuePage(p payload, page Page) (string, error) {
	p.Page, p.State, p.Issued = page.Index, bytes.Clone(page.State), uint64(time.Now().Unix())
	return i.issue(&p)
}

// payloadOf returns a payload in which only the session and the fields that depend on the
// request are set: tool, caller and digest of the arguments.
func (i *Issuer) payloadOf(request Request, plainExponents bool) (*payload, error) {
	sum, err := compat.ATDFingerprint(request.Arguments, plainExponents)
	if err != nil {
		return nil, &argumentsError{err}
	}
	p := &payload{Tool: request.Tool}
	if request.Caller != "" {
		p.Caller = &request.Caller
	}
	p.Fingerprint, p.Session = numbersOf(sum[:]), i.session
	return p, nil
}

func (i *Issuer) issue(p *payload) (string, error) {
	if len(p.State) > MaxState {
		return "", fmt.Errorf("%w: it has %d; keep a key in it, not a row", ErrStateTooLarge, len(p.State))
	}
	if !utf8.ValidString(p.Tool) {
		return "", errToolText
	}
	if p.Caller != nil && !utf8.ValidString(*p.Caller) {
		return "", errCallerText
	}
	body, err := p.encode()
	if err != nil {
		return "", err
	}
	sum := i.mac.sum(body)
	if base64.RawURLEncoding.EncodedLen(len(body)+len(sum)) > MaxCursor {
		return "", p.tooLarge()
	}
	return base64.RawURLEncoding.EncodeToString(append(body, sum...)), nil
}

// Open returns the page that a cursor leads to, if the cursor was issued for this request.
// The error is one of this package's Err variables, or says that the arguments are not
// JSON. Call Open for every request that has a cursor.
func (i *Issuer) Open(request Request, cursor string) (Page, error) {
	page, _, err := i.open(request, cursor)
	return page, err
}

// open does what Open does. It also returns a payload from which the next cursor is made. In that
// payload, only the session and the fields that depend on the request are set.
func (i *Issuer) open(request Request, cursor string) (Page, *payload, error) {
	p, err := i.verify(cursor) // verify first, so that no digest is computed for a forged cursor
	if err != nil {
		return Page{}, nil, err
	}
	want, err := i.payloadOf(request, i.plain)
	if err != nil {
		return Page{}, nil, err
	}
	if !p.boundAs(want) {
		if other, err := i.payloadOf(request, !i.plain); err != nil || !p.boundAs(other) {
			return Page{}, nil, ErrMismatch
		}
	}
	if err := i.inTime(p); err != nil {
		return Page{}, nil, err
	}
	return Page{p.Page, p.State}, want, nil
}

// verify returns the payload of a cursor, or an error if the cursor is not genuine.
func (i *Issuer) verify(cursor string) (*payload, error) {
	if len(cursor) > MaxCursor {
		return nil, ErrTooLarge
	}
	signed, ok := decodeText(cursor)
	if !ok || len(signed) < macSize {
		return nil, ErrFormat
	}
	body, sum := signed[:len(signed)-macSize], signed[len(signed)-macSize:]
	if !i.mac.verify(sum, body) {
		return nil, ErrSignature
	}
	return decodePayload(body)
}

// boundAs reports whether two payloads are for the same tool, caller and arguments.
func (p *payload) boundAs(want *payload) bool {
	same := func(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return p.Tool == want.Tool && same(p.Caller, want.Caller) && slices.Equal(p.Fingerprint, want.Fingerprint)
}

// inTime returns an error if the cursor belongs to another session, is too old, or has a
// date too far in the future.
func (i *Issuer) inTime(p *payload) error {
	if !slices.Equal(i.session, p.Session) {
		return errSession
	}
	now := uint64(max(time.Now().Unix(), 0))
	switch {
	case p.Issued > now+uint64(clockSkew/time.Second):
		return ErrFormat
	case p.Issued < now && now-p.Issued > i.ttl:
		return ErrExpired
	}
	return nil
}
