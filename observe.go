package tripseal

import (
	"context"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"github.com/tripseal/tripseal/internal/guard"
)

// Op is the kind of operation that an [Event] is about. Use it as the label of a metric.
type Op string

const (
	OpSeal Op = "seal" // a state was sealed, or could not be sealed
	OpOpen Op = "open" // a token was opened or rejected
	OpDrop Op = "drop" // answers from the client were not passed to the handler

	OpSealHandle Op = "seal_handle" // an id was sealed into a handle, or could not be sealed
	OpOpenHandle Op = "open_handle" // a handle was opened or rejected
)

// Event is one operation of a boundary, for metrics: [Config.Observer] gets it. A dashboard may show all of it: it
// holds no token, state, key, argument or user. Op, Reason, Method, Target and Format have few values, so they can be
// labels of a metric. The other fields cannot, because clients can cause any number of different values. Opening a
// first round, which has no token, causes no event.
type Event struct {
	Op       Op            // what the boundary did
	Reason   Reason        // why the operation failed; "" if it succeeded
	Cause    error         // explains Reason, such as how your store failed; its text is safe to log
	Duration time.Duration // how long the operation took

	// Method is the method of the request, as the adapter gave it. It is "" for a handle.
	Method string
	// Target is the tool or the prompt, the scheme of a resource's URI, or the kind of a handle. It is [TargetUnknown]
	// if no handler ran and the request has no genuine token for this target: a client may have made up the name.
	Target string

	// Format is the prefix of the token's format, "unprefixed" for a format without a prefix, or "" if the token
	// belongs to no format.
	Format     string
	KeyID      string // the id of the key that the token names, even if the token is forged; "" if it is unknown
	TokenBytes int    // the length of the token in bytes; 0 if there is none
	StateBytes int    // the length of the state in bytes; 0 if there is none or the token was rejected

	Dropped int // with OpDrop: how many answers were dropped, because no question asked for them or they were incomplete

	Flow  string // the flow's id if the token is genuine or is being sealed, otherwise ""
	Round int    // the token's round if the token is genuine or is being sealed, otherwise 0
}

// TargetUnknown is the Target of an event about a request whose target may not exist. So a metric with the target as
// its label gets one value for all names that clients make up.
const TargetUnknown = "unknown"

func (b *Boundary) startEvent() (start time.Time) {
	if b.config.Observer != nil {
		start = time.Now()
	}
	return start
}

func (b *Boundary) event(op Op, start time.Time, round *Round, format *acceptedFormat, token string) Event {
	e := Event{Op: op, TokenBytes: len(token)}
	if round != nil {
		e.Method, e.Target = guard.PlainText(round.binding.Method), guard.PlainText(targetOf(&round.binding))
		e.StateBytes = len(round.claims.State)
		if round.claims.Flow != [16]byte{} {
			e.Flow, e.Round = hex.EncodeToString(round.claims.Flow[:]), round.claims.Round
		}
	}
	if format != nil {
		e.Format = format.name()
		if named, ok := format.Format.(interface{ KeyID(string) string }); ok && token != "" {
			guard.Quietly(func() { e.KeyID = guard.PlainText(named.KeyID(token)) })
		}
	}
	if !start.IsZero() {
		e.Duration = time.Since(start)
	}
	return e
}

// rejected tells the operator why a token was rejected, and returns the error that Open must return.
func (b *Boundary) rejected(
	ctx context.Context, start time.Time, round *Round, format *acceptedFormat, token string, fail *failure,
) error {
	fail.excuse(ctx)
	e := b.event(OpOpen, start, round, format, token)
	e.StateBytes = 0
	if fail.params != nil { // if the request has a token, bad arguments cause a rejection, not a paramsError
		fail.reason = ReasonArguments
	}
	// The target exists if a genuine token was sealed for it, even by another service or for another user.
	targetExists := round.named || fail.flow != [16]byte{} && fail.reason != ReasonRequest
	b.report(ctx, fail.reason.Level(), "tripseal: token rejected", &e, targetExists, fail)
	return &RejectError{fail.reason, fail.cause}
}

// notSealed tells the operator why a state was not sealed, and returns the error that Seal must return.
func (b *Boundary) notSealed(
	ctx context.Context, start time.Time, round *Round, format *acceptedFormat, stateSize int, fail *failure,
) error {
	e := b.event(OpSeal, start, round, format, "")
	e.StateBytes = stateSize
	if fail.params != nil {
		b.report(ctx, slog.LevelWarn, "tripseal: arguments cannot be digested", &e, true, fail)
		return &paramsError{fail.params}
	}
	level := slog.LevelError
	if fail.excuse(ctx); fail.reason == ReasonCanceled {
		level = fail.reason.Level()
	}
	b.report(ctx, level, "tripseal: state not sealed", &e, true, fail)
	return &SealError{Reason: fail.reason, cause: fail.cause}
}

// report completes the event and passes it to the log and the observer. Pass true as targetExists if the target of the
// request certainly exists.
func (b *Boundary) report(
	ctx context.Context, level slog.Level, message string, e *Event, targetExists bool, fail *failure,
) {
	e.Reason = fail.reason
	if fail.flow != [16]byte{} {
		e.Flow, e.Round = hex.EncodeToString(fail.flow[:]), fail.round
	}
	e.Cause = fail.cause.OrNil()
	attrs := []slog.Attr{
		slog.String("reason", string(e.Reason)),
		slog.String("method", e.Method),
		slog.String("target", e.Target),
		slog.String("format", e.Format),
		slog.String("key", e.KeyID),
		slog.Int("token_bytes", e.TokenBytes),
		slog.Int("state_bytes", e.StateBytes),
	}
	attrs = append(attrs, e.flowAttrs()...)
	if fail.missing != 0 {
		attrs = append(attrs, slog.String("claims", fail.missing.String()))
	}
	b.logContext(ctx, level, message, append(attrs, guard.Attrs(fail.cause)...)...)
	if !targetExists {
		e.Target = TargetUnknown
	}
	b.observe(ctx, *e)
}

// flowAttrs returns the event's flow and round for the log, or nil if the flow is unknown.
func (e *Event) flowAttrs() []slog.Attr {
	if e.Flow == "" {
		return nil
	}
	return []slog.Attr{slog.String("flow", e.Flow), slog.Int("round", e.Round)}
}

// Dropped tells the log and the observer that the adapter did not pass n answers of this request to the handler,
// because no question asked for them or they were incomplete. An adapter calls Dropped at most once a round.
func (r *Round) Dropped(ctx context.Context, n int) {
	b := r.boundary
	if b == nil || n <= 0 {
		return
	}
	e := b.event(OpDrop, time.Time{}, r, nil, "")
	e.Dropped, e.StateBytes = n, 0
	const message = "tripseal: dropped answers that were incomplete, or to questions that were not asked"
	b.logContext(ctx, slog.LevelWarn, message, append([]slog.Attr{
		slog.String("method", e.Method), slog.String("target", e.Target), slog.Int("answers", n),
	}, e.flowAttrs()...)...)
	if !r.named {
		e.Target = TargetUnknown
	}
	b.observe(ctx, e)
}

// Answered tells the observer that the client has answered the questions of a round that [Boundary.AskNow] began.
func (r *Round) Answered(ctx context.Context) {
	if b := r.boundary; b != nil && b.config.Observer != nil {
		b.observe(ctx, b.event(OpOpen, time.Time{}, r, &b.formats[0], ""))
	}
}

// observe passes the event to the observer, if there is one, and ignores a panic of the observer.
func (b *Boundary) observe(ctx context.Context, e Event) {
	if b.config.Observer != nil {
		guard.Quietly(func() { b.config.Observer(ctx, e) })
	}
}

func (b *Boundary) logContext(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	guard.Log(ctx, b.config.Logger, level, message, attrs...)
}

func (b *Boundary) log(level slog.Level, message string, attrs ...slog.Attr) {
	b.logContext(context.Background(), level, message, attrs...)
}

func (b *Boundary) warnHalfUsed(id KeyID) {
	b.log(slog.LevelWarn, "tripseal: a key has spent half of its 2^32 seals in this process alone: rotate to a new one",
		slog.String("key", id.String()))
}

// targetOf returns the part of the target that a log may show: the name of a tool or prompt, but only the scheme of
// anything else, because a URI can hold secrets.
func targetOf(b *Binding) string {
	if b.Method == methodTool || b.Method == methodPrompt {
		return b.Target
	}
	scheme, _, ok := strings.Cut(b.Target, ":")
	if !ok || len(scheme) > 32 || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return ""
	}
	return scheme + ":"
}
