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
			view, d, err := look(args[0], &c.room)
			if err == nil {
				err = c.check(cmd, &view, d)
			}
			return view.show(cmd, err)
		},
	}
	c.room.flags(cmd)
	c.unwrap.Flags(cmd, "identity")
	cmd.Flags().StringVar(&c.against, "against", "", "the file that is in use")
	cmd.Flags().BoolVar(&c.allowLoss, "allow-loss", false, "exit with 0 although tokens are lost, as after revoke")
	return cmd
}

// check returns an error that says why a service would not load the file, or should not.
func (c *checking) check(cmd *cobra.Command, view *fileView, d *keyfile.Document) error {
	// A service does not decrypt the secrets of keys that no longer open tokens.
	opening := slices.DeleteFunc(d.Keys(), func(k *keyfile.Key) bool { return !k.Opens(view.now) })
	for _, k := range opening {
		if k.Secret.Scheme() == "" && c.unwrap.Given() {
			return cli.No("%s would not load: the secret of key %s is not encrypted; see tripseal keys wrap", cli.Named(view.File), k.ID)
		}
	}
	if _, err := c.unwrap.Open(cmd, view.File, opening); err != nil {
		return err
	}
	view.Done = cli.Named(view.File) + " would load"
	if c.against == "" {
		return nil
	}
	old, err := keyfile.Read(c.against)
	if err != nil {
		return keyuse.FileError(c.against, err)
	}
	var lost, back []string
	view.Changes, lost, back = compare(old, d, view.now, c.room.forLoading(d))
	view.Done += "; compared with " + cli.Named(c.against) + ":"
	switch {
	case len(view.Changes) == 0:
		view.Done += " nothing changes"
	case len(back) > 0:
		return cli.No("revoked keys come back: %s; is this file older than %s?", strings.Join(back, " "), cli.Named(c.against))
	case len(lost) > 0 && !c.allowLoss:
		return cli.No("tokens are lost: %s; --allow-loss accepts that", strings.Join(lost, "; "))
	}
	return nil
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

// maxSeals is how many values a key may seal for one purpose. The purposes are states, cursors and
// handles.
const maxSeals = 1 << 32

func newList() *cobra.Command {
	var room room
	var rate float64
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "Show the keys, what each does now, and what happens next",
		Long: `Shows the keys, what each does now, and what happens next, but never a secret.

    waiting  opens, and will seal     opening  opens what it sealed
    sealing  opens and seals          retired  opens nothing

A key is good for 2³² seals over the whole fleet. --rate says how many seals the
fleet makes a second; a warning names a key that may have made half of its 2³².

Exit code 1 means that services would not load the file.`,
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, _, err := look(args[0], &room)
			for _, k := range view.Keys {
				if seals := rate * view.now.Sub(k.SealsFrom).Seconds(); k.Phase == keyuse.Sealing && seals > maxSeals/2 {
					view.warn("at %g seals a second (--rate) key %s may have made %.1f %% of its 2^32 seals: rotate", rate, k.ID, 100*seals/maxSeals)
				}
			}
			return view.show(cmd, err)
		},
	}
	room.flags(cmd)
	cmd.Flags().Float64Var(&rate, "rate", 100, "seals a second over the whole fleet; 0 turns the warning off")
	return cmd
}

// look reads the file of keys. It returns a view of the file, with warnings, and the parsed file. The
// error says why a service would not load the file.
func look(path string, room *room) (fileView, *keyfile.Document, error) {
	d, err := keyfile.Read(path)
	view := viewOf(path, d, now())
	if err != nil {
		return view, nil, keyuse.FileError(path, err)
	}
	if mode, exposed := keyfile.Exposed(path); exposed {
		view.warn("others can read or change the file (mode %04o): chmod 600 it", mode)
	}
	if err := d.Check(view.now, room.forLoading(d)); err != nil {
		return view, d, cli.No("%s would not load: %w", cli.Named(path), err)
	}
	return view, d, nil
}
