package tripseal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/native"
)

const (
	defaultHandleLifetime = 24 * time.Hour
	maxHandleLifetime     = 365 * 24 * time.Hour
	maxHandleKind         = 64   // bytes
	maxHandle             = 4096 // bytes; no codec makes a longer handle, and a longer one is not even decoded
)

// Handles seals ids that a client keeps, such as the id of a session, a job or an upload. The sealed text, a handle,
// opens only for the user that it was sealed for, at this service, and only as a handle of this kind. A client can
// neither read nor make a handle. Make one Handles with [NewHandles] for each kind of id. It is safe for concurrent
// use.
//
// A handle proves nothing about the caller: the principal must verify the user of every call. If callers have no user,
// the handle of one of them works for all of them.
type Handles struct {
	boundary *Boundary
	format   *acceptedFormat // only its texts and its key ids are used
	kind     string          // in a form for the log
	lifetime time.Duration
	binding  handleBinding // without the user
}

// NewHandles returns the handles of one kind, such as "session", with the keys, Audience, RequireUser, Logger and
// Observer of the boundary. A handle opens for the lifetime, counted from when it was sealed; 0 means 24 hours. A
// handle also stops working when its key expires. If the key source knows that a key may expire before a lifetime that
// you set, that is an error. An error says what to change. Call NewHandles when the server starts.
func NewHandles(boundary *Boundary, kind string, lifetime time.Duration) (*Handles, error) {
	if boundary == nil {
		return nil, errors.New("tripseal: handles need a boundary, which has their keys; make one with New")
	}
	codec := boundary.Codec(PurposeHandle)
	if codec == nil {
		return nil, errors.New("tripseal: handles need keys, and the boundary has neither a ring nor a codec; " +
			"set Config.Keys, or add NativeFormat(keys) to Config.AlsoOpen")
	}
	if kind == "" || len(kind) > maxHandleKind {
		return nil, fmt.Errorf("tripseal: the kind of handles has 1 to %d bytes, this one has %d; "+
			"name what the ids stand for, such as session", maxHandleKind, len(kind))
	}
	chosen := lifetime != 0
	orDefault(&lifetime, defaultHandleLifetime)
	if lifetime < time.Millisecond || lifetime > maxHandleLifetime {
		return nil, fmt.Errorf("tripseal: the lifetime of handles is %v, not between %v and %v",
			lifetime, time.Millisecond, maxHandleLifetime)
	}
	format := newRecordFormat(PurposeHandle.Prefix(), codec)
	if chosen { // a file with keys for an hour is good enough for the default
		if err := tellLifetime(format.ring, lifetime); err != nil {
			return nil, err
		}
	}
	return &Handles{
		boundary: boundary, kind: guard.PlainText(kind), lifetime: lifetime,
		format:  &acceptedFormat{Format: format, prefix: format.prefix, record: format},
		binding: handleBinding{audience: boundary.audience, kind: handleDigest(handleKindLabel, kind)},
	}, nil
}

// Seal returns a handle for the id. Only the user that the principal returns can use it; a nil principal means that
// there is no user. The id has 1 to 1024 bytes. If it has more than 65, the handle shows how many. The error is a
// [*SealError].
func (h *Handles) Seal(ctx context.Context, principal Principal, id string) (handle string, err error) {
	start := h.boundary.startEvent()
	handle, fail := h.seal(ctx, principal, id)
	h.report(ctx, OpSealHandle, start, handle, fail)
	if fail != nil {
		return "", &SealError{fail.reason, fail.cause, "handle"}
	}
	return handle, nil
}

func (h *Handles) seal(ctx context.Context, principal Principal, id string) (string, *failure) {
	if id == "" {
		return "", failedBecause(ReasonMisuse, "the id of a handle is empty")
	}
	if len(id) > maxHandleID {
		return "", failedBecause(ReasonTooLarge, "the id of a handle has %d bytes, more than %d", len(id), maxHandleID)
	}
	binding, fail := h.bind(ctx, principal)
	if fail != nil {
		return "", fail
	}
	s := native.Borrow()
	defer s.Release()
	s.Payload = appendHandle(s.Payload[:0], time.Now().UnixMilli(), h.lifetime.Milliseconds(), &binding, id)
	return h.format.record.sealText(ctx, s)
}

// Open returns the id in a handle. The handle must be unchanged and not expired, and must have been sealed for this
// user, at this service, as a handle of this kind. Otherwise the error is a [*RejectError], whatever is wrong. Then
// answer as if there were nothing with this id.
func (h *Handles) Open(ctx context.Context, principal Principal, handle string) (id string, err error) {
	start := h.boundary.startEvent()
	id, fail := h.open(ctx, principal, handle)
	h.report(ctx, OpOpenHandle, start, handle, fail)
	if fail != nil {
		return "", &RejectError{fail.reason, fail.cause}
	}
	return id, nil
}

func (h *Handles) open(ctx context.Context, principal Principal, handle string) (string, *failure) {
	if len(handle) > maxHandle {
		return "", failed(ReasonTooLarge)
	}
	text, ok := strings.CutPrefix(handle, h.format.prefix)
	if !ok {
		return "", failed(ReasonMalformed)
	}
	binding, fail := h.bind(ctx, principal)
	if fail != nil {
		return "", fail
	}
	s := native.Borrow()
	defer s.Release()
	payload, fail := h.format.record.openText(ctx, s, text)
	if fail != nil {
		return "", fail
	}
	head, id, reason := parseHandle(payload)
	if reason != "" {
		return "", failed(reason)
	}
	if reason := binding.refuses(head, time.Now().UnixMilli()); reason != "" {
		return "", failed(reason)
	}
	return string(id), nil
}

// bind finds out who is calling, and returns what the handles of this caller are bound to.
func (h *Handles) bind(ctx context.Context, principal Principal) (handleBinding, *failure) {
	user, cause := principal.identify(ctx)
	if cause != nil {
		return handleBinding{}, &failure{reason: ReasonPrincipalFailed, cause: cause}
	}
	if user == "" && h.boundary.config.RequireUser {
		return handleBinding{}, failed(ReasonUser)
	}
	binding := h.binding
	binding.user = handleDigest(handleUserLabel, user)
	return binding, nil
}

// report tells the observer about an operation. It tells the log too if the operation failed.
func (h *Handles) report(ctx context.Context, op Op, start time.Time, handle string, fail *failure) {
	b := h.boundary
	if fail == nil && b.config.Observer == nil {
		return
	}
	e := b.event(op, start, nil, h.format, handle)
	e.Target = h.kind
	if fail == nil {
		b.observe(ctx, e)
		return
	}
	fail.excuse(ctx)
	level, message := fail.reason.Level(), "tripseal: handle rejected"
	if op == OpSealHandle {
		message = "tripseal: handle not sealed"
		if fail.reason != ReasonCanceled {
			level = slog.LevelError
		}
	}
	b.report(ctx, level, message, &e, true, fail)
}

const (
	handleMark    = 'H' // the first byte of every handle's record
	handleVersion = 1
	maxHandleID   = 1024

	// minHandle is the length to which a shorter record is padded, so that a handle does not show the length of a
	// short id.
	minHandle = 128
)

// The offsets of the fields in a handle's record. docs/token.md defines every byte.
const (
	handleIssued   = 2  // 6 bytes long
	handleLifetime = 8  // 5 bytes long
	handleAudience = 13 // 16 bytes long
	handleKind     = 29 // 16 bytes long
	handleUser     = 45 // 16 bytes long
	handleLength   = 61 // 2 bytes: the length of the id
	handleHead     = 63
)

// handleBinding is what a handle is bound to, in the form that its record holds.
type handleBinding struct{ audience, kind, user [digestSize]byte }

// The labels of [handleDigest].
const handleKindLabel, handleUserLabel = "mh1k", "mh1p"

// handleDigest returns the digest of a kind or a user. The user of a caller without one is "".
func handleDigest(label, text string) [digestSize]byte {
	var scratch [128]byte
	return native.Sum(native.AppendFramed(append(scratch[:0], label...), text))
}

// appendHandle appends the record of a handle to dst. The id must have 1 to maxHandleID bytes.
func appendHandle(dst []byte, issued, lifetime int64, b *handleBinding, id string) []byte {
	var head [handleHead]byte
	native.PutSpan(head[:], handleLifetime, lifetime) // backwards: each Put overwrites bytes before its field
	native.PutInstant(head[:], handleIssued, issued)
	head[0], head[1] = handleMark, handleVersion
	copy(head[handleAudience:], b.audience[:])
	copy(head[handleKind:], b.kind[:])
	copy(head[handleUser:], b.user[:])
	binary.BigEndian.PutUint16(head[handleLength:], uint16(len(id)))
	return append(append(append(dst, head[:]...), id...), handlePadding(len(id))...)
}

var handleZeros [minHandle - handleHead]byte

// handlePadding returns the zero bytes that follow an id of this length.
func handlePadding(length int) []byte { return handleZeros[:max(0, len(handleZeros)-length)] }

// parseHandle parses the payload of a genuine handle. The results are parts of the payload, not copies. If the payload
// cannot be parsed, the reason says why; otherwise it is "".
func parseHandle(payload []byte) (head *[handleHead]byte, id []byte, reason Reason) {
	if len(payload) < 2 || payload[0] != handleMark || payload[1] != handleVersion {
		return nil, nil, ReasonVersion
	}
	if len(payload) < handleHead {
		return nil, nil, ReasonMalformed
	}
	head, rest := (*[handleHead]byte)(payload), payload[handleHead:]
	length := int(binary.BigEndian.Uint16(head[handleLength:]))
	if length == 0 || length > min(maxHandleID, len(rest)) || !bytes.Equal(rest[length:], handlePadding(length)) ||
		native.Span(head[:], handleLifetime) == 0 {
		return nil, nil, ReasonMalformed
	}
	return head, rest[:length], ""
}

// refuses returns why a handle is not for this binding at this time, or "" if it is.
func (b *handleBinding) refuses(head *[handleHead]byte, now int64) Reason {
	issued := native.Instant(head[:], handleIssued)
	switch {
	case !native.Same(head[handleAudience:handleKind], &b.audience):
		return ReasonAudience
	case !native.Same(head[handleKind:handleUser], &b.kind):
		return ReasonRequest
	case !native.Same(head[handleUser:handleLength], &b.user):
		return ReasonUser
	case !(issued <= now+clockSkew.Milliseconds()):
		return ReasonFromTheFuture
	case !(now < issued+native.Span(head[:], handleLifetime)): // last: nobody else learns the age
		return ReasonExpired
	}
	return ""
}
