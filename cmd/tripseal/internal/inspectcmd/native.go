package inspectcmd

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	_ "github.com/tripseal/tripseal/cursor" // imported because it sets the variable inspect.ReadCursor
	"github.com/tripseal/tripseal/internal/b64u"
	"github.com/tripseal/tripseal/internal/inspect"
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
		return r.cursor(payload, phase, a)
	case tripseal.PurposeHandle:
		return r.handle(payload)
	}
	return r.state(ctx, token, payload, known.ring, phase, a)
}

var kinds = map[uint8]string{
	uint8(tripseal.KindForm): "form", uint8(tripseal.KindURL): "URL",
	uint8(tripseal.KindSampling): "sampling", uint8(tripseal.KindRoots): "roots",
}

func (r *report) state(ctx context.Context, token string, payload []byte, all *tripseal.Ring, phase keyuse.Phase, a asked) error {
	s, err := inspect.ReadState(payload)
	if err != nil {
		return r.verdict(reasonOf(err), "")
	}
	r.time("issued", "issued", s.Issued)
	r.time("expires", "expires", s.Expires)
	flow := hex.EncodeToString(s.Flow[:])
	r.add("flow", "flow", fmt.Sprintf("%s, round %d", flow, s.Round), flow)
	r.add("", "round", "", s.Round)
	r.time("flow began", "flow_start", s.FlowStart)
	r.addBound(s.Audience, s.User, "nobody")
	var questions []string
	asked := []map[string]any{}
	for _, q := range s.Questions {
		words := fmt.Sprintf("%s (%s)", cli.Quoted(q.Key), kinds[q.Kind])
		if q.Worded {
			words = fmt.Sprintf("%s (%s, exact words sealed)", cli.Quoted(q.Key), kinds[q.Kind])
		}
		questions = append(questions, words)
		asked = append(asked, map[string]any{"key": q.Key, "kind": kinds[q.Kind], "worded": q.Worded})
	}
	r.add("questions", "questions", orNone(strings.Join(questions, ", ")), asked)
	switch text := fmt.Sprintf("%s: %s", cli.Count(len(s.State), "byte"), cli.Quoted(s.State)); {
	case !s.HasState:
		r.add("state", "state", "none was written", nil)
	case utf8.ValidString(s.State):
		r.add("state", "state", text, s.State)
	default:
		r.add("state", "state_base64", text, []byte(s.State))
	}
	if !a.verdict {
		return nil
	}
	switch {
	case len(token) > a.limits.token:
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
			return r.anotherUser(a, s.User)
		}
	}
	reason := tripseal.Reason(s.Limits(a.at, a.limits.flow, a.limits.rounds))
	if reason == "" && len(s.State) > a.limits.state {
		reason = tripseal.ReasonTooLarge
	}
	if digest, err := format.Digest(binding); reason == "" && (err != nil || !bytes.Equal(digest, claims.Arguments)) {
		reason = tripseal.ReasonArguments
	}
	return r.verdict(reason, atWords(a.at)+"; whether it was used before is not known here")
}

func (r *report) cursor(payload []byte, phase keyuse.Phase, a asked) error {
	c, err := inspect.ReadCursor(payload)
	if err != nil {
		return r.verdict(reasonOf(err), "")
	}
	r.time("issued", "issued", c.Issued)
	r.time("expires", "expires", c.Expires)
	r.add("page", "page", fmt.Sprintf("leads to page %d", c.Number+1), c.Number+1)
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
	reason := tripseal.ReasonUser
	for _, a.binding.User = range a.users {
		why, err := c.BoundTo(a.binding)
		if err != nil {
			return cli.Usage("--args: %w", err)
		}
		if reason = tripseal.Reason(why); reason != tripseal.ReasonUser {
			break // the token is bound to this name, or another name would not help
		}
	}
	if reason == tripseal.ReasonUser {
		return r.anotherUser(a, c.User)
	}
	if reason == "" {
		reason = tripseal.Reason(c.InTime(a.at))
	}
	err = r.verdict(reason, atWords(a.at))
	if reason == tripseal.ReasonArguments {
		r.add("hint", "hint", pagedHint, pagedHint)
	}
	return err
}

// handle adds to the report what a handle holds. It does not say whether the handle would be
// accepted, because no flag names the handle's kind.
func (r *report) handle(payload []byte) error {
	h, err := inspect.ReadHandle(payload)
	if err != nil {
		return r.verdict(reasonOf(err), "")
	}
	r.time("issued", "issued", h.Issued)
	r.time("expires", "expires", h.Expires)
	r.add("id", "id", fmt.Sprintf("%s: %s", cli.Count(len(h.ID), "byte"), cli.Quoted(string(h.ID))), h.ID)
	return nil
}

const pagedHint = "for a paged tool, leave the cursor itself and the arguments in PageOptions.Unbound out of --args"

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

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
