package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

func newKeysAdd() *cobra.Command {
	var secrets secrets
	var in startFlag
	cmd := &cobra.Command{
		Use:   "add FILE",
		Short: "Add a key that takes over, and let the others open for ever",
		Long: `Adds a key that begins to seal after --in. The other keys go on opening without an
end; rotate is the same with one.`,
		Example: `  mcpseal keys add keys --in 1h
  mcpseal keys add keys --in 0s   in an emergency: replicas without the file reject`,
		Args:              exactly("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time) (string, error) {
				k, err := secrets.makeKey(cmd, d, now, now.Add(time.Duration(in)))
				if err != nil {
					return "", err
				}
				if err := d.Add(k); err != nil {
					return "", err
				}
				return fmt.Sprintf("added key %s", k.ID), d.Schedule().Check(now, keyfile.Room{})
			})
		},
	}
	secrets.flags(cmd)
	secrets.stdinFlag(cmd)
	in.flag(cmd)
	return cmd
}

func newKeysRotate() *cobra.Command {
	var secrets secrets
	var in startFlag
	var room room
	cmd := &cobra.Command{
		Use:   "rotate FILE",
		Short: "Add the next key, and set when the old one ends",
		Long: `Adds a key that begins to seal after --in, and lets the key before it open for
--ttl and twice --skew after that. Bring the file to every replica before --in is
over; the clock does the rest.`,
		Example: `  mcpseal keys rotate keys
  mcpseal keys rotate keys --in 30m --ttl 24h`,
		Args:              exactly("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(in.check(), room.check()); err != nil {
				return err
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time) (string, error) {
				schedule := d.Schedule()
				for _, k := range schedule {
					if schedule.Phase(k, now) == keyfile.Waiting {
						return "", no("key %s is already to take over (%s); wait for that, or revoke it first", k.ID, when(k.SealsFrom, now))
					}
				}
				k, err := secrets.makeKey(cmd, d, now, now.Add(time.Duration(in)))
				if err != nil {
					return "", err
				}
				for _, old := range d.Keys() {
					if old.OpensUntil.IsZero() {
						old.OpensUntil = k.SealsFrom.Add(room.Span())
					}
				}
				if err := d.Add(k); err != nil {
					return "", err
				}
				if time.Duration(in) < room.Skew {
					fmt.Fprintf(cmd.ErrOrStderr(), "warning: --in %v is less than the clock skew of %v: a replica whose clock is ahead seals before the others have the file\n",
						time.Duration(in), room.Skew)
				}
				return fmt.Sprintf("added key %s; bring the file to every replica before %s", k.ID, clock(k.SealsFrom)),
					d.Schedule().Check(now, room.Room)
			})
		},
	}
	secrets.flags(cmd)
	in.flag(cmd)
	room.flags(cmd)
	return cmd
}
