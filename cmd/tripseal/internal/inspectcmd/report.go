package inspectcmd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// report holds what the command found out about a token, as lines in the order of the output.
type report struct {
	now   time.Time
	lines []reportLine
}

type reportLine struct {
	label, name string // label is printed for people ("" if another line shows the value), name is the member in JSON
	text        string
	value       any
}

// add adds a line to the report. Without the flag --json, the line shows the label and the text;
// with the flag, it shows the name and the value.
func (r *report) add(label, name, text string, value any) {
	r.lines = append(r.lines, reportLine{label, name, text, value})
}

func (r *report) time(label, name string, milli int64) {
	t := time.UnixMilli(milli).UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		r.add(label, name, "at a time that no calendar has", nil)
		return
	}
	r.add(label, name, cli.TimeText(t, r.now), t)
}

func (r *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		object := make(map[string]any, len(r.lines))
		for _, l := range r.lines {
			object[l.name] = l.value
		}
		return cli.PrintJSON(out, object)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range r.lines {
		if l.label != "" {
			fmt.Fprintf(table, "%s\t%s\n", l.label, l.text)
		}
	}
	return table.Flush()
}

// inspect adds to the report what it can find out about the token. It returns an error if the
// token would not be accepted, or if inspect cannot do what the flags ask for.
func (r *report) inspect(cmd *cobra.Command, token string, a asked) error {
	prefix, _, _ := strings.Cut(token, ".")
	switch prefix + "." {
	case tripseal.PurposeState.Prefix():
		return r.addNative(cmd, token, tripseal.PurposeState, a)
	case tripseal.PurposeCursor.Prefix():
		return r.addNative(cmd, token, tripseal.PurposeCursor, a)
	case tripseal.PurposeHandle.Prefix():
		return r.addNative(cmd, token, tripseal.PurposeHandle, a)
	}
	if err := r.addForeign(token); err != nil {
		return err
	}
	if a.keys.given() && !a.keys.implied {
		return cli.No("keys open native tokens only, and this is not one")
	}
	return nil
}

// verdict adds to the report whether the token would be accepted. The reason "" means that it
// would. Any other reason means that it would be rejected: verdict adds this reason too, and
// returns an error.
func (r *report) verdict(reason tripseal.Reason, detail string) error {
	if reason == "" {
		r.add("accepted", "accepted", "yes"+detail, true)
		return nil
	}
	words := whyNot[reason]
	if words == "" {
		words = "see docs/operations.md"
	}
	r.add("accepted", "accepted", "no", false)
	r.add("reason", "reason", fmt.Sprintf("%s: %s", string(reason), words), string(reason))
	return cli.No("not accepted: %s", string(reason))
}

// whyNot explains reasons to reject a token.
var whyNot = map[tripseal.Reason]string{
	tripseal.ReasonMalformed:     "this is not the text of a token; a part of it may be missing",
	tripseal.ReasonUnknownKey:    "its key is not among these keys, or no longer opens",
	tripseal.ReasonForged:        "it was changed, or never sealed with this key",
	tripseal.ReasonTooLarge:      "the token or the state is longer than allowed",
	tripseal.ReasonVersion:       "it has another purpose, or is of a newer release",
	tripseal.ReasonRequest:       "it was sealed for another method or target",
	tripseal.ReasonArguments:     "it was sealed for other arguments; for a paged tool, leave the cursor and PageOptions.Unbound out of --args",
	tripseal.ReasonAudience:      "it was sealed by another service, or a cursor with another epoch",
	tripseal.ReasonUser:          "it was sealed for another user, or for nobody; --user, --issuer and --client must be as in the access token",
	tripseal.ReasonExpired:       "it is too old",
	tripseal.ReasonFromTheFuture: "it was issued by a clock that is ahead",
	tripseal.ReasonFlowExpired:   "all rounds together took too long",
	tripseal.ReasonTooManyRounds: "all rounds together are too many",
}

// reasonOf returns the Reason in err, or ReasonMalformed if err has none.
func reasonOf(err error) tripseal.Reason {
	var reason tripseal.Reason
	if errors.As(err, &reason) {
		return reason
	}
	return tripseal.ReasonMalformed
}
