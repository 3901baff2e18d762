package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeysAdd() *cobra.Command {
	var secrets secrets
	var start startFlag
	cmd := &cobra.Command{
		Use:   "add FILE",
		Short: "Add a key that takes over, and leave the others as they are",
		Long: `Adds a key that begins to seal after --in. The other keys keep their dates; rotate
also sets when they end.`,
		Example: `  tripseal keys add keys --in 1h
  tripseal keys add keys --stdin < key   a key that exists already`,
		Args:              exactArgs("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := start.check(); err != nil {
				return err
			}
			k, err := secrets.make(cmd)
			if err != nil {
				return err
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				k.Made, k.SealsFrom = now, now.Add(start.in)
				if err := secrets.add(d, k); err != nil {
					return err
				}
				did.noteAdded(k)
				did.Warnings = start.warnings(usual.Skew)
				return d.Check(now, keyfile.Room{})
			})
		},
	}
	secrets.flags(cmd)
	secrets.stdinFlag(cmd)
	start.flag(cmd)
	return cmd
}

func newKeysRotate() *cobra.Command {
	var secrets secrets
	var start startFlag
	var room room
	cmd := &cobra.Command{
		Use:   "rotate FILE",
		Short: "Add the next key, and set when the old one ends",
		Long: `Adds a key that begins to seal after --in. From then on, the key before it opens for
the longest lifetime of a token plus twice the clock skew. Bring the file to every
replica within the time of --in; the clock does the rest.

The file remembers --ttl and --skew, so they need to be given only once, and again
when they grow.

A rotation is under way until the new key seals, --in after it was made. Until
then the next one is refused, with exit code 1. To start over, revoke the key that
is waiting.`,
		Example: `  tripseal keys rotate keys
  tripseal keys rotate keys --in 30m --ttl 24h`,
		Args:              exactArgs("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(start.check(), room.check()); err != nil {
				return err
			}
			k, err := secrets.make(cmd)
			if err != nil {
				return err
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				schedule := d.Schedule()
				for _, other := range schedule {
					if schedule.Phase(other, now) == keyfile.Waiting {
						return no("a rotation is under way: key %s takes over at %s; rotate again after that, or give up key %s first: tripseal keys revoke %s %s",
							other.ID, timeText(other.SealsFrom, now), other.ID, named(args[0]), other.ID)
					}
				}
				if err := secrets.checkEncrypted(d, k); err != nil {
					return err
				}
				k.Made, k.SealsFrom = now, now.Add(start.in)
				needed := room.forChange(d)
				did.Warnings = append(start.warnings(needed.Skew), room.warnings(d)...)
				did.noteAdded(k)
				d.Raise(room.Room)
				return d.Rotate(k, now, needed)
			})
		},
	}
	secrets.flags(cmd)
	start.flag(cmd)
	room.flags(cmd)
	return cmd
}

// noteAdded notes two things in the view: the file's new key, and the time by which every
// replica must have the file.
func (v *fileView) noteAdded(k *keyfile.Key) {
	v.Added, v.DeliverBefore = k.ID.String(), &k.SealsFrom
	v.Done = fmt.Sprintf("added key %s; bring the file to every replica before %s UTC", k.ID, clock(k.SealsFrom))
	if k.SealsFrom.Equal(k.Made) {
		v.Done = fmt.Sprintf("added key %s, which seals now; bring the file to every replica at once", k.ID)
	}
}
