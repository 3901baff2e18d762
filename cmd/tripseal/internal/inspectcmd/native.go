package inspectcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/internal/b64u"
)

// sealedOverhead is how many bytes a decoded token has in addition to its payload: the key
// id, the nonce and the tag.
const sealedOverhead = 4 + 12 + 16

// addNative adds to the report what it finds out about a token or cursor in tripseal's own
// format.
func (r *report) addNative(cmd *cobra.Command, token string, purpose tripseal.Purpose, a asked) error {
	ctx := cmd.Context()
	name := map[tripseal.Purpose]string{
		tripseal.PurposeState: "tripseal state", tripseal.PurposeCursor: "tripseal cursor", tripseal.PurposeHandle: "tripseal handle",
	}[purpose]
	if purpose == tripseal.PurposeHandle && a.verdict {
		return cli.Usage("a handle belongs to no request: leave --method and --target out")
	}
	r.add("format", "format", fmt.Sprintf("%s (%s)", name, purpose.Prefix()), name)
	text := strings.TrimPrefix(token, purpose.Prefix())
	raw, err := b64u.Decode(nil, text)
	if err != nil || len(raw) < sealedOverhead {
		return r.verdict(tripseal.ReasonMalformed, "")
	}
	id := tripseal.KeyID(raw)
	r.add("key", "key", id.String(), id.String())
	r.add("length", "length", fmt.Sprintf("%d characters, %d bytes sealed", len(token), len(raw)-sealedOverhead), len(token))
	r.add("", "sealed_bytes", "", len(raw)-sealedOverhead)
	r.add("readable", "readable", "its holder can read the key's id and the length, nothing else", []string{"key", "length"})
	if !a.keys.given() {
		return nil
	}
	known, err := a.keys.load(cmd, a.at)
	if err != nil {
		return err
	}
	if known.file == nil {
		r.add("keys", "keys_from", "in the environment variable "+a.keys.Variable, a.keys.Variable)
	}
	phase, ok := known.phases[id]
	if !ok {
		if known.file != nil {
			for _, revoked := range known.file.Revoked() {
				if revoked.ID == id {
					r.add("revoked", "revoked", "its key was revoked, "+cli.TimeText(revoked.At, r.now), revoked.At)
				}
			}
		}
		return r.verdict(tripseal.ReasonUnknownKey, "")
	}
	payload, err := tripseal.RingCodec(known.ring, purpose).Open(ctx, nil, text)
	if err != nil {
		r.add("genuine", "genuine", "no", false)
		return r.verdict(reasonOf(err), "")
	}
	r.add("genuine", "genuine", fmt.Sprintf("yes, sealed with key %s, which is %s", id, phase), true)
	r.add("", "key_phase", "", phase)
	switch purpose {
	case tripseal.PurposeCursor:
		return r.cursor(ctx, token, payload, known.ring, phase, a)
	case tripseal.PurposeHandle:
		return r.handle(payload)
	}
	return r.state(ctx, token, payload, known.ring, phase, a)
}

var kinds = map[tripseal.Kind]string{
	tripseal.KindForm: "form", tripseal.KindURL: "URL", tripseal.KindSampling: "sampling", tripseal.KindRoots: "roots",
}

func (r *report) state(
	ctx context.Context, token string, payload []byte, all *tripseal.Ring, phase keyuse.Phase, a asked,
) error {
	s, bound, err := tripseal.ReadRecord(payload)
	if err != nil {
		return r.verdict(reasonOf(err), "")
	}
	r.time("issued", "issued", s.Issued)
	r.time("expires", "expires", s.Expires)
	flow := hex.EncodeToString(s.Flow[:])
	r.add("flow", "flow", fmt.Sprintf("%s, round %d", flow, s.Round), flow)
	r.add("", "round", "", s.Round)
	r.time("flow began", "flow_start", s.FlowStart)
	r.addBound(bound&tripseal.ClaimAudience != 0, bound&tripseal.ClaimUser != 0, "nobody")
	var questions []string
	asked := []map[string]any{}
	for _, q := range s.Questions {
		questions = append(questions, fmt.Sprintf("%s (%s)", cli.Quoted(q.Key), kinds[q.Kind]))
		asked = append(asked, map[string]any{"key": q.Key, "kind": kinds[q.Kind]})
	}
	r.add("questions", "questions", cmp.Or(strings.Join(questions, ", "), "none"), asked)
	switch text := fmt.Sprintf("%s: %s", cli.Count(len(s.State), "byte"), cli.Quoted(s.State)); {
	case !s.HasState:
		r.add("state", "state", "none was written", nil)
	case utf8.ValidString(s.State):
		r.add("state", "state", text, s.State)
	default:
		r.add("state", "state_base64", text, []byte(s.State))
	}
	if s.Elicit {
		r.add("written by", "elicit", "package elicit, for the handler", true)
	}
	if !a.verdict {
		return nil
	}
	switch {
	case a.limits.token > 0 && len(token) > a.limits.token:
		return r.verdict(tripseal.ReasonTooLarge, "")
	case phase == keyuse.Retired:
		return r.verdict(tripseal.ReasonUnknownKey, "")
	}
	binding := &tripseal.Binding{
		Method: a.binding.Method, Target: a.binding.Target, Arguments: a.binding.Arguments,
		Audience: a.binding.Audience,
	}
	var claims tripseal.Claims
	format := tripseal.NativeFormat(all)
	for i, user := range a.users {
		binding.User = user
		if claims, err = format.Open(ctx, binding, token); err == nil {
			break
		}
		if reason := reasonOf(err); reason != tripseal.ReasonUser {
			return r.verdict(reason, "")
		}
		if i == len(a.users)-1 {
			return r.verdict(tripseal.ReasonUser, "")
		}
	}
	reason := refusedAt(a.at, &s, a.limits)
	if reason == "" && a.limits.state > 0 && len(s.State) > a.limits.state {
		reason = tripseal.ReasonTooLarge
	}
	if digest, err := format.Digest(binding); reason == "" && (err != nil || !bytes.Equal(digest, claims.Arguments)) {
		reason = tripseal.ReasonArguments
	}
	return r.verdict(reason, atWords(a.at)+"; whether it was used before is not known here")
}

// clockSkew is how far in the future a token may have been sealed: see docs/token.md.
const clockSkew = 60 * time.Second

// refusedAt returns why a boundary with these limits would refuse the times of a token at the given time, or "".
func refusedAt(at time.Time, c *tripseal.Claims, l limits) tripseal.Reason {
	now, latest := at.UnixMilli(), at.Add(clockSkew).UnixMilli()
	switch {
	case now >= c.Expires:
		return tripseal.ReasonExpired
	case c.Issued > latest || c.FlowStart > latest:
		return tripseal.ReasonFromTheFuture
	case l.flow > 0 && c.Round > 0 && now >= c.FlowStart+l.flow.Milliseconds():
		return tripseal.ReasonFlowExpired
	case l.rounds > 0 && c.Round > l.rounds:
		return tripseal.ReasonTooManyRounds
	}
	return ""
}

func (r *report) cursor(
	ctx context.Context, token string, payload []byte, all *tripseal.Ring, phase keyuse.Phase, a asked,
) error {
	c, err := cursor.Read(payload)
	if err != nil {
		return r.verdict(reasonOf(err), "")
	}
	r.time("issued", "issued", c.Issued)
	r.time("expires", "expires", c.Expires)
	r.add("page", "page", fmt.Sprintf("leads to page %d", c.Page+1), c.Page+1)
	who := "nobody"
	if c.Everybody {
		who = "anybody"
	}
	r.addBound(true, c.User, who)
	r.add("position", "position", fmt.Sprintf("%s: %s", cli.Count(len(c.Position), "byte"), cli.Quoted(string(c.Position))), c.Position)
	if !a.verdict {
		return nil
	}
	if phase == keyuse.Retired {
		return r.verdict(tripseal.ReasonUnknownKey, "")
	}
	reason := tripseal.ReasonAudience // no cursor is for a service without a name
	if a.binding.Audience != "" {
		boundary, err := tripseal.New(tripseal.Config{
			Keys: all, Audience: a.binding.Audience,
			MaxArguments: len(a.binding.Arguments) + 1, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return cli.Usage("--args: %w", err)
		}
		cursors, err := cursor.New(boundary, cursor.Options{Epoch: a.epoch, MaxPosition: len(c.Position) + 1})
		if err != nil {
			return cli.Usage("--args: %w", err)
		}
		request := tripseal.Request{Method: a.binding.Method, Target: a.binding.Target, Arguments: a.binding.Arguments}
		for _, user := range a.users {
			request.Principal = func(context.Context) (string, error) { return user, nil }
			_, err := cursors.Open(ctx, request, token)
			var rejected *cursor.Error
			if reason = ""; errors.As(err, &rejected) {
				reason = rejected.Reason
			}
			if reason != tripseal.ReasonUser {
				break // the token is bound to this name, or another name would not help
			}
		}
	}
	if reason == "" || reason == tripseal.ReasonExpired || reason == tripseal.ReasonFromTheFuture { // Open checks the times last, and now
		reason = refusedAt(a.at, &tripseal.Claims{Issued: c.Issued, Expires: c.Expires}, a.limits)
	}
	return r.verdict(reason, atWords(a.at))
}

// handle adds to the report what a handle holds. It does not say whether the handle would be
// accepted, because no flag names the handle's kind.
func (r *report) handle(payload []byte) error {
	h, _, err := tripseal.ReadRecord(payload)
	if err != nil {
		return r.verdict(reasonOf(err), "")
	}
	r.time("issued", "issued", h.Issued)
	r.time("expires", "expires", h.Expires)
	r.add("id", "id", fmt.Sprintf("%s: %s", cli.Count(len(h.State), "byte"), cli.Quoted(h.State)), []byte(h.State))
	return nil
}

// addBound adds to the report what the token is bound to. It cannot show the names of the
// service and the user, because the token holds only their digests. But the flags --audience
// and --user can be compared with these digests.
func (r *report) addBound(audience, user bool, otherwise string) {
	service, who := "no service", otherwise
	if audience {
		service = "a service (compare with --audience)"
	}
	if user {
		who = "a user (compare with --user)"
	}
	r.add("bound to", "bound_to", fmt.Sprintf("its request and arguments, %s, %s", service, who),
		map[string]any{"audience": audience, "user": user})
}

func atWords(at time.Time) string { return " at " + cli.Clock(at) + " UTC" }
