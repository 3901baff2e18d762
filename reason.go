package mcpseal

import "log/slog"

// Reason says why a token was rejected or a state not sealed. It is for the
// operator: a client never learns it.
//
// A Reason is an error, so that a [Codec] or a [Format] can return it.
type Reason string

// Why a token is rejected. The first four are about a token that did not prove
// genuine; the others about genuine tokens, or about the service itself.
const (
	ReasonMalformed  Reason = "malformed"   // not the text of any token
	ReasonUnknownKey Reason = "unknown_key" // sealed with a key that is not, or no longer, in the ring
	ReasonForged     Reason = "forged"      // changed, or never sealed
	ReasonTooLarge   Reason = "too_large"   // longer than a token, or a state, may be

	ReasonVersion       Reason = "version"         // of another purpose, or of a newer release
	ReasonRequest       Reason = "request"         // sealed for another method or target
	ReasonArguments     Reason = "arguments"       // sealed for other arguments, or these have no digest
	ReasonAudience      Reason = "audience"        // sealed by another service
	ReasonPrincipal     Reason = "principal"       // sealed for another user, for nobody, or nobody is calling
	ReasonExpired       Reason = "expired"         // too old
	ReasonFromTheFuture Reason = "from_the_future" // issued by a clock that is ahead
	ReasonFlowExpired   Reason = "flow_expired"    // all rounds together took too long
	ReasonTooManyRounds Reason = "too_many_rounds" // all rounds together are too many
	ReasonReplayed      Reason = "replayed"        // used before
	ReasonClaimMissing  Reason = "claim_missing"   // of a format that cannot carry what policy demands

	ReasonCodecFailed     Reason = "codec_failed"     // the codec, format or key source failed
	ReasonPrincipalFailed Reason = "principal_failed" // who is calling could not be told
	ReasonStoreFailed     Reason = "store_failed"     // the single-use store failed or took too long

	ReasonCanceled Reason = "canceled" // the caller gave up while a part of the service was asked; perhaps spent

	ReasonInvalidParams Reason = "invalid_params" // the arguments of a first round have no digest, the client's fault
	ReasonBadQuestions  Reason = "bad_questions"  // too many questions to seal, or malformed ones
	ReasonMisuse        Reason = "misuse"         // a Round of another boundary, or of none
)

// Level is how urgent a rejection is: an error where the service failed and its
// operator must act, a warning where a client did something.
func (r Reason) Level() slog.Level {
	switch r {
	case ReasonCodecFailed, ReasonPrincipalFailed, ReasonStoreFailed:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// Error makes a Reason an error.
func (r Reason) Error() string { return "mcpseal: " + string(r) }
