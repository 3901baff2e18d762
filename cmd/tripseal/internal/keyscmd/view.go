package keyscmd

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// fileView is what the commands print about a file of keys. It holds no secret.
type fileView struct {
	OK            bool          `json:"ok"`
	File          string        `json:"file"`
	Done          string        `json:"done,omitempty"` // what the command did, in words
	Problem       string        `json:"problem,omitempty"`
	Added         string        `json:"added,omitempty"` // the id of the key that the command added, or ""
	DeliverBefore *time.Time    `json:"deliver_before,omitempty"`
	Changes       []string      `json:"changes,omitempty"`  // how the file differs from the file that --against names
	Lifetime      string        `json:"lifetime,omitempty"` // the longest lifetime of a token, as the file states it, such as 24h
	Skew          string        `json:"skew,omitempty"`
	Keys          []keyView     `json:"keys"`
	Revoked       []revokedView `json:"revoked"`
	Next          []eventView   `json:"next"`
	Warnings      []string      `json:"warnings"`
	now           time.Time
}

type keyView struct {
	ID         string       `json:"id"`
	Phase      keyuse.Phase `json:"phase"`
	Made       time.Time    `json:"made"`
	SealsFrom  time.Time    `json:"seals_from"`
	OpensUntil *time.Time   `json:"opens_until"` // null means that no end is set
	Wrapped    string       `json:"wrapped,omitempty"`
}

type revokedView struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// eventView says that a key begins to seal or stops opening at a time in the future.
type eventView struct {
	At   time.Time `json:"at"`
	ID   string    `json:"id"`
	What string    `json:"what"`
}

// viewOf returns the view of a document, or of a file that cannot be read if d is nil.
func viewOf(path string, d *keyfile.Document, now time.Time) fileView {
	v := fileView{OK: d != nil, File: path, Keys: []keyView{}, Revoked: []revokedView{}, Next: []eventView{}, Warnings: []string{}, now: now}
	if d == nil {
		return v
	}
	if room := d.Room(); room.TTL > 0 {
		v.Lifetime = keyfile.FormatDuration(room.TTL)
	}
	if room := d.Room(); room.Skew > 0 {
		v.Skew = keyfile.FormatDuration(room.Skew)
	}
	schedule := d.Schedule()
	sealer := schedule.SealerAt(now)
	for _, k := range schedule {
		view := keyView{ID: k.ID.String(), Phase: keyuse.PhaseOf(k, sealer, now), Made: k.Made, SealsFrom: k.SealsFrom, Wrapped: k.Secret.Scheme()}
		if now.Before(k.SealsFrom) {
			v.Next = append(v.Next, eventView{k.SealsFrom, view.ID, "seals"})
		}
		if !k.OpensUntil.IsZero() {
			view.OpensUntil = &k.OpensUntil
			if k.Opens(now) {
				v.Next = append(v.Next, eventView{k.OpensUntil, view.ID, "stops opening"})
			}
		}
		v.Keys = append(v.Keys, view)
	}
	slices.SortStableFunc(v.Next, func(a, b eventView) int { return a.At.Compare(b.At) })
	for _, r := range d.Revoked() {
		v.Revoked = append(v.Revoked, revokedView{r.ID.String(), r.At})
	}
	if sealer != nil && now.Before(sealer.SealsFrom) {
		v.warn("no key is due to seal yet; %s seals meanwhile: is the clock of this machine right?", sealer.ID)
	}
	return v
}

func (v *fileView) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// print prints the view to standard output. With --json the view includes the warnings;
// without --json they go to standard error.
func (v *fileView) print(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if forProgram(cmd) {
		return cli.PrintJSON(out, v)
	}
	if v.Done != "" {
		fmt.Fprintln(out, v.Done)
		for _, change := range v.Changes {
			fmt.Fprintf(out, "  %s\n", change)
		}
		fmt.Fprintln(out)
	}
	v.printKeys(out)
	for _, w := range v.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
	}
	return nil
}

// show prints the view of a file that was read, and returns the error that says what is wrong with it, if anything is.
func (v *fileView) show(cmd *cobra.Command, wrong error) error {
	if wrong != nil {
		v.OK, v.Problem = false, wrong.Error()
	}
	if wrong == nil || len(v.Keys) > 0 || forProgram(cmd) {
		if err := v.print(cmd); err != nil {
			return err
		}
	}
	return wrong
}

func forProgram(cmd *cobra.Command) bool {
	asJSON, _ := cmd.Flags().GetBool("json")
	return asJSON
}

func (v *fileView) printKeys(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tPHASE\tAGE\tSEALS FROM (UTC)\tOPENS UNTIL (UTC)\tSECRET")
	for _, k := range v.Keys {
		until, secret, age := "no end", "readable", "none yet"
		if k.OpensUntil != nil {
			until = cli.Clock(*k.OpensUntil)
		}
		if k.Wrapped != "" {
			secret = k.Wrapped
		}
		if !k.Made.After(v.now) {
			age = cli.Span(v.now.Sub(k.Made).Truncate(time.Second))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Phase, age, cli.Clock(k.SealsFrom), until, secret)
	}
	for _, r := range v.Revoked {
		fmt.Fprintf(table, "%s\trevoked\t\t\t%s\tgone\n", r.ID, cli.Clock(r.At))
	}
	table.Flush()
	if v.Lifetime != "" {
		fmt.Fprintf(out, "\nTokens live for up to %s.\n", v.Lifetime)
	}
	if len(v.Next) == 0 {
		fmt.Fprintln(out, "\nNothing is planned.")
		return
	}
	fmt.Fprintln(out, "\nNext:")
	table = tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	for _, e := range v.Next {
		fmt.Fprintf(table, "  %s\t%s %s\n", cli.TimeText(e.At, v.now), e.ID, e.What)
	}
	table.Flush()
}
