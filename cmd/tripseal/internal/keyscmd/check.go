package keyscmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// checking holds the flags of the command tripseal keys check.
type checking struct {
	room      room
	unwrap    keyuse.Unwrap
	against   string
	allowLoss bool
}

func newCheck() *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a file would load, and what would change",
		Long: `Says whether a service would load the file, and what will happen then. With
--against, also says what would change for a service that uses another file now.

Exit code 1 means that the file would not load, that tokens are lost, or that a
revoked key comes back; --allow-loss accepts lost tokens, for a key that was
revoked. Exit code 3 means that there is no answer: secrets are encrypted and
nothing was given to decrypt them.`,
		Example: `  tripseal keys check new-keys --against /etc/release/keys`,
		Args:    cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, err := c.check(cmd, args[0])
			if err != nil {
				view.OK, view.Problem = false, err.Error()
			}
			if err == nil || forProgram(cmd) || view.Changes != nil {
				if err := view.print(cmd); err != nil {
					return err
				}
			}
			return err
		},
	}
	c.room.flags(cmd)
	c.unwrap.Flags(cmd, "identity")
	cmd.Flags().StringVar(&c.against, "against", "", "the file that is in use")
	cmd.Flags().BoolVar(&c.allowLoss, "allow-loss", false, "exit with 0 although tokens are lost, as after revoke")
	return cmd
}

// check returns a view of the file, and an error that says what is wrong with it.
func (c *checking) check(cmd *cobra.Command, path string) (fileView, error) {
	view, d, err := look(path)
	if err != nil {
		return view, err
	}
	needed := c.room.forLoading(d)
	if err := d.Check(view.now, needed); err != nil {
		return view, cli.No("%s would not load: %w", cli.Named(path), err)
	}
	// A service does not decrypt the secrets of keys that no longer open tokens.
	opening := slices.DeleteFunc(d.Keys(), func(k *keyfile.Key) bool { return !k.Opens(view.now) })
	if c.unwrap.Lacks(opening) {
		return view, cli.Failed("the dates in %s are good, but its secrets are wrapped: give --identity or --unwrap", cli.Named(path))
	}
	for _, k := range opening {
		if k.Secret.Scheme() == "" && c.unwrap.Given() {
			return view, cli.No("%s would not load: the secret of key %s is not encrypted; see tripseal keys wrap", cli.Named(path), k.ID)
		}
	}
	if _, err := c.unwrap.Open(cmd, opening); err != nil {
		return view, keyuse.FileError(path, fmt.Errorf("it would not load: %w", err))
	}
	view.Done = cli.Named(path) + " would load"
	if c.against == "" {
		return view, nil
	}
	_, old, err := look(c.against)
	if err != nil {
		return view, err
	}
	var lost, back []string
	view.Changes, lost, back = compare(old, d, view.now, needed)
	view.Done += "; compared with " + cli.Named(c.against) + ":"
	switch {
	case len(view.Changes) == 0:
		view.Done += " nothing changes"
	case len(back) > 0:
		return view, cli.No("revoked keys come back: %s; is this file older than %s?", strings.Join(back, " "), cli.Named(c.against))
	case len(lost) > 0 && !c.allowLoss:
		return view, cli.No("tokens are lost: %s; --allow-loss accepts that", strings.Join(lost, "; "))
	}
	return view, nil
}

// compare says what a service sees when it loads the file d instead of the old one: each change, the
// changes that make it reject valid tokens, and the revoked keys that open again.
func compare(old, d *keyfile.Document, now time.Time, needed keyfile.Room) (changes, lost, back []string) {
	was, is := old.Schedule().SealerAt(now), d.Schedule().SealerAt(now)
	all := slices.Concat(old.Schedule(), slices.DeleteFunc(d.Keys(), func(k *keyfile.Key) bool { return old.Find(k.ID) != nil }))
	for _, k := range all {
		before, after := state(old, k.ID, now), state(d, k.ID, now)
		if before == after {
			continue
		}
		change := fmt.Sprintf("%s is %s; before, it was %s", k.ID, after, before)
		changes = append(changes, change)
		young, known := d.Find(k.ID), old.Find(k.ID) != nil
		switch {
		case young != nil && before == gone:
			back = append(back, k.ID.String())
		case young == nil && k.Opens(now) && (k == was || !now.Before(k.SealsFrom)):
			lost = append(lost, change)
		case !known && young == is:
			lost = append(lost, fmt.Sprintf("%s is new and seals at once: replicas without the file reject its tokens", k.ID))
		case known && k == was && young != is && !young.Opens(now.Add(needed.TTL+needed.Skew)):
			lost = append(lost, fmt.Sprintf("%s seals until replicas get the file, and then opens for too short", k.ID))
		}
	}
	return changes, lost, back
}

const gone = "revoked"

// state says in words what the file says about a key.
func state(d *keyfile.Document, id tripseal.KeyID, now time.Time) string {
	k := d.Find(id)
	switch {
	case k == nil && slices.ContainsFunc(d.Revoked(), func(r keyfile.Revocation) bool { return r.ID == id }):
		return gone
	case k == nil:
		return "not in the file"
	}
	until := "no end"
	if !k.OpensUntil.IsZero() {
		until = "end " + cli.Clock(k.OpensUntil)
	}
	return fmt.Sprintf("%s (from %s UTC, %s)", keyuse.PhaseOf(k, d.Schedule().SealerAt(now), now), cli.Clock(k.SealsFrom), until)
}
