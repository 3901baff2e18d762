package tripseal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tripseal/tripseal/internal/native"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// RecordFormat returns a format that seals the native record with your own codec, for [Config.Format]. Tokens begin
// with the prefix: 2 to 16 lower-case letters and digits, then a full stop. The prefix must not be one of tripseal's
// own. Use RecordFormat if the keys are in an HSM or a key service.
func RecordFormat(prefix string, codec Codec) Format {
	return newRecordFormat(prefix, codec)
}

// NativeFormat returns the format that a boundary has if [Config.Format] is nil: the native record, sealed with a
// ring. List it in [Config.AlsoOpen] if [Config.Format] is another format and native tokens must open too.
func NativeFormat(keys KeySource) Format {
	return newRecordFormat(PurposeState.Prefix(), RingCodec(keys, PurposeState))
}

type recordFormat struct {
	prefix string
	codec  Codec
	ring   *ringCodec // the value of codec if that is a *ringCodec; otherwise nil
	texts  native.Texts
}

func newRecordFormat(prefix string, codec Codec) *recordFormat {
	ring, _ := codec.(*ringCodec)
	return &recordFormat{prefix, codec, ring, native.NewTexts(prefix, codec)}
}

func (f *recordFormat) Prefix() string    { return f.prefix }
func (f *recordFormat) Carries() ClaimSet { return allClaims }

func (f *recordFormat) Digest(binding *Binding) ([]byte, error) {
	sum, err := binding.ArgumentsDigest()
	if err != nil {
		return nil, err
	}
	return sum[:digestSize], nil
}

func (f *recordFormat) Seal(ctx context.Context, binding *Binding, claims *Claims) (string, error) {
	if !wellFormed(claims.Questions) || len(claims.Arguments) != digestSize {
		return "", errClaims
	}
	d := &digests{plainKnown: true}
	copy(d.plain[:], claims.Arguments)
	token, fail := f.seal(ctx, binding, d, claims)
	if fail != nil {
		return "", fail
	}
	return token, nil
}

func (f *recordFormat) Open(ctx context.Context, binding *Binding, token string) (Claims, error) {
	var c contents
	if fail := f.open(ctx, binding, new(digests), token, &c); fail != nil {
		return Claims{}, fail
	}
	c.claims.Questions, c.claims.Arguments = slices.Collect(c.questions.inOrder), c.sealed[:]
	return c.claims, nil
}

const errClaims = plainError("the claims do not fit the record")

// seal does what Seal does, and reuses the digests in d. The digest of the arguments must be in d already, and the
// questions must be well-formed.
func (f *recordFormat) seal(ctx context.Context, binding *Binding, d *digests, claims *Claims) (string, *failure) {
	d.saltFor(binding, claims.Flow)
	s := native.Borrow()
	defer s.Release()
	payload, ok := appendRecord(s.Payload[:0], claims, binding, d)
	if !ok {
		return "", failedBecause(ReasonCodecFailed, "%s", errClaims)
	}
	s.Payload = payload
	return f.sealText(ctx, s)
}

// sealText seals the payload in s.
func (f *recordFormat) sealText(ctx context.Context, s *native.Scratch) (text string, fail *failure) {
	fail = call(func() (err error) {
		text, err = f.texts.Seal(ctx, s)
		return err
	}, ReasonCodecFailed)
	return text, fail
}

// openText returns the payload of a text without its prefix. The payload is valid until s is released.
func (f *recordFormat) openText(ctx context.Context, s *native.Scratch, text string) (payload []byte, fail *failure) {
	fail = call(func() (err error) {
		payload, err = f.texts.Open(ctx, s, text)
		return err
	}, ReasonCodecFailed, ReasonMalformed, ReasonUnknownKey, ReasonForged)
	return payload, fail
}

// open does what Open does, and reuses the digests in d. It puts what the token holds into c.
func (f *recordFormat) open(ctx context.Context, binding *Binding, d *digests, token string, c *contents) *failure {
	text, ok := strings.CutPrefix(token, f.prefix)
	if !ok {
		return failed(ReasonMalformed)
	}
	s := native.Borrow()
	defer s.Release()
	payload, fail := f.openText(ctx, s, text)
	if fail != nil {
		return fail
	}
	rec, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
	}
	d.saltFor(binding, rec.flow())
	if reason := rec.boundTo(binding, d); reason != "" {
		fail := failed(reason)
		fail.flow, fail.round = rec.flow(), rec.round()
		return fail
	}
	if reason := rec.decode(c); reason != "" {
		return failed(reason)
	}
	c.sealed = d.applyMask(rec.head[atArguments:])
	return nil
}

// KeyID returns the key id in a token, even in a forged one, or "" if there is none.
func (f *recordFormat) KeyID(token string) string {
	if f.ring == nil || !strings.HasPrefix(token, f.prefix) {
		return ""
	}
	return f.ring.KeyID(token[len(f.prefix):])
}

// The version and the flags of the native record. docs/token.md defines every byte of the record.
const (
	stateMark     = 'S' // the first byte of every state's record
	recordVersion = 1

	flagState    = 1 << 0
	flagAudience = 1 << 1
	flagUser     = 1 << 2
	flagElicit   = 1 << 3
	flagsKnown   = flagState | flagAudience | flagUser | flagElicit

	maxRound = 1<<16 - 1
)

// The offsets of the fields that every native record has.
const (
	atFlags     = 2
	atIssued    = 3  // 6 bytes long
	atLifetime  = 9  // 5 bytes long
	atAge       = 14 // 5 bytes long
	atRound     = 19 // 2 bytes long
	atFlow      = 21
	atRequest   = 37
	atArguments = 53
	headSize    = 69
)

// appendRecord appends the native record of the claims to dst. It returns false if the record cannot hold the times or
// the round. The questions must be well-formed.
func appendRecord(dst []byte, c *Claims, b *Binding, d *digests) ([]byte, bool) {
	lifetime, age := c.Expires-c.Issued, c.Issued-c.FlowStart
	fits := 0 <= c.Issued && c.Issued <= native.MaxInstant && 0 < lifetime && lifetime <= native.MaxSpan &&
		0 <= age && age <= native.MaxSpan && 1 <= c.Round && c.Round <= maxRound
	if !fits {
		return nil, false
	}
	var flags byte
	if c.HasState {
		flags |= flagState
	}
	if b.Audience != "" {
		flags |= flagAudience
	}
	if b.User != "" {
		flags |= flagUser
	}
	if c.Elicit {
		flags |= flagElicit
	}
	var head [headSize]byte
	native.PutSpan(head[:], atAge, age) // backwards: each Put overwrites bytes before its field
	native.PutSpan(head[:], atLifetime, lifetime)
	native.PutInstant(head[:], atIssued, c.Issued)
	head[0], head[1], head[atFlags] = stateMark, recordVersion, flags
	binary.BigEndian.PutUint16(head[atRound:], uint16(c.Round))
	copy(head[atFlow:], c.Flow[:])
	copy(head[atRequest:], d.request[:])
	arguments := d.applyMask(d.plain[:])
	copy(head[atArguments:], arguments[:])
	dst = append(dst, head[:]...)
	if flags&flagAudience != 0 {
		dst = append(dst, d.audience[:]...)
	}
	if flags&flagUser != 0 {
		dst = append(dst, d.user[:]...)
	}
	dst = append(dst, byte(len(c.Questions)))
	dst = appendQuestions(dst, c.Questions)
	return append(dst, c.State...), true
}

// record is a payload, parsed up to the questions. The slices in it are parts of the payload, not copies.
type record struct {
	head           *[headSize]byte
	audience, user []byte
	questions      int
	rest           []byte // the questions and the state
}

func parseRecord(payload []byte) (record, Reason) {
	if len(payload) < 2 || payload[0] != stateMark || payload[1] != recordVersion {
		return record{}, ReasonVersion
	}
	if len(payload) < headSize {
		return record{}, ReasonMalformed
	}
	rec := record{head: (*[headSize]byte)(payload), rest: payload[headSize:]}
	flags := rec.head[atFlags]
	short := !rec.cutDigest(&rec.audience, flags&flagAudience != 0) ||
		!rec.cutDigest(&rec.user, flags&flagUser != 0) || len(rec.rest) == 0
	if short || flags&^flagsKnown != 0 || rec.lifetime() == 0 || rec.round() == 0 || rec.rest[0] > MaxQuestions {
		return record{}, ReasonMalformed
	}
	rec.questions, rec.rest = int(rec.rest[0]), rec.rest[1:]
	return rec, ""
}

// cutDigest cuts a digest off the front of rec.rest and stores it in *field. If the parameter present is false, the
// record has no such digest: cutDigest then does nothing and returns true. It returns false if rec.rest is too short.
func (rec *record) cutDigest(field *[]byte, present bool) bool {
	if !present {
		return true
	}
	if len(rec.rest) < digestSize {
		return false
	}
	*field, rec.rest = rec.rest[:digestSize:digestSize], rec.rest[digestSize:]
	return true
}

func (rec *record) issued() int64   { return native.Instant(rec.head[:], atIssued) }
func (rec *record) lifetime() int64 { return native.Span(rec.head[:], atLifetime) }
func (rec *record) age() int64      { return native.Span(rec.head[:], atAge) }
func (rec *record) round() int      { return int(binary.BigEndian.Uint16(rec.head[atRound:])) }
func (rec *record) flow() [16]byte  { return [16]byte(rec.head[atFlow:atRequest]) }

// boundTo returns why the record is not bound to the binding b, or "" if it is. It does not compare the arguments: the
// boundary does that later.
func (rec *record) boundTo(b *Binding, d *digests) Reason {
	switch {
	case !native.Same(rec.head[atRequest:atArguments], &d.request):
		return ReasonRequest
	case !sameClaim(rec.audience, b.Audience != "", &d.audience):
		return ReasonAudience
	case !sameClaim(rec.user, b.User != "", &d.user):
		return ReasonUser
	}
	return ""
}

// sameClaim reports whether the record and the request have the same digest, or neither has one. If the record has no
// digest, recordDigest is nil. If the request has no digest, requestHasOne is false and requestDigest is ignored.
func sameClaim(recordDigest []byte, requestHasOne bool, requestDigest *[digestSize]byte) bool {
	if !requestHasOne {
		return recordDigest == nil
	}
	return recordDigest != nil && native.Same(recordDigest, requestDigest)
}

// decode puts the claims and the questions into c. Both are copied from the payload in one allocation. The reason is
// "" if the record is well-formed.
func (rec *record) decode(c *contents) Reason {
	questions, state, ok := cutQuestions(rec.rest, rec.questions)
	hasState, elicit := rec.head[atFlags]&flagState != 0, rec.head[atFlags]&flagElicit != 0
	if !ok || !hasState && (state != "" || elicit) {
		return ReasonMalformed
	}
	issued := rec.issued()
	c.questions = questions
	c.claims = Claims{
		Issued:    issued,
		Expires:   issued + rec.lifetime(),
		Flow:      rec.flow(),
		FlowStart: issued - rec.age(),
		Round:     rec.round(),
		State:     state,
		HasState:  hasState,
		Elicit:    elicit,
	}
	return ""
}

const digestSize = native.DigestSize

// digests holds the digests of one binding, as a native record holds them. Each digest is computed when it is first
// needed, and kept for the round. The binding must not change.
//
// The flow's id salts the digests, so that nobody sees whether two flows have the same user or arguments. Within one
// flow the digests stay the same. The audience needs no salt: it is the same public name in every token of a service.
type digests struct {
	plain         [strictjson.Size]byte // the digest of the arguments, without salt
	plainKnown    bool
	audienceKnown bool
	known         bool     // true if the salted digests were computed
	flow          [16]byte // the flow for which the salted digests were computed

	request, mask, audience, user [digestSize]byte // mask salts the digest of the arguments
}

// saltFor computes all digests that a token of this flow holds, except the digest of the arguments. It does nothing if
// d already has the digests for this flow.
func (d *digests) saltFor(b *Binding, flow [16]byte) {
	if d.known && d.flow == flow {
		return
	}
	var scratch [128]byte
	buf := append(scratch[:0], "ms1r"...)
	buf = append(buf, flow[:]...)
	buf = native.AppendFramed(buf, b.Method)
	request := sha256.Sum256(native.AppendFramed(buf, b.Target))
	// The second half of the hash is the mask. It looks random, and is always the same for one flow, method and
	// target.
	d.request, d.mask = [digestSize]byte(request[:]), [digestSize]byte(request[digestSize:])

	if b.Audience != "" && !d.audienceKnown {
		d.audience, d.audienceKnown = audienceDigest(b.Audience), true
	}
	if b.User != "" {
		buf = append(scratch[:0], "ms1p"...)
		buf = append(buf, flow[:]...)
		d.user = native.Sum(native.AppendFramed(buf, b.User))
	}
	d.known, d.flow = true, flow
}

// applyMask combines the digest of the arguments with the mask by XOR. This salts the digest. A second call, with the
// salted digest, removes the salt.
func (d *digests) applyMask(arguments []byte) (masked [digestSize]byte) {
	for i := 0; i < digestSize; i += 8 {
		half := binary.NativeEndian.Uint64(arguments[i:]) ^ binary.NativeEndian.Uint64(d.mask[i:])
		binary.NativeEndian.PutUint64(masked[i:], half)
	}
	return masked
}

func audienceDigest(audience string) [digestSize]byte {
	return native.Sum(native.AppendFramed([]byte("ms1s"), audience))
}

// ReadRecord decodes the payload of a token or a handle that a [Codec] opened, for tools that show what it holds. The
// set bound has [ClaimAudience] and [ClaimUser] if it is bound to a service and a user. The State of a handle is its
// id. ReadRecord checks nothing but the form of the payload: to accept a token, call [Boundary.Open].
func ReadRecord(payload []byte) (claims Claims, bound ClaimSet, err error) {
	if len(payload) > 0 && payload[0] == handleMark {
		head, id, reason := parseHandle(payload)
		if reason != "" {
			return Claims{}, 0, reason
		}
		issued := native.Instant(head[:], handleIssued)
		expires := issued + native.Span(head[:], handleLifetime)
		return Claims{Issued: issued, Expires: expires, State: string(id), HasState: true}, ClaimAudience | ClaimUser, nil
	}
	rec, reason := parseRecord(payload)
	var held contents
	if reason == "" {
		reason = rec.decode(&held)
	}
	if reason != "" {
		return Claims{}, 0, reason
	}
	if rec.audience != nil {
		bound |= ClaimAudience
	}
	if rec.user != nil {
		bound |= ClaimUser
	}
	held.claims.Questions = slices.Collect(held.questions.inOrder)
	return held.claims, bound, nil
}
