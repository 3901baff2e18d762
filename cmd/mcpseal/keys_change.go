package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

func newKeysNew() *cobra.Command {
	var secrets secrets
	var onlyPrint bool
	cmd := &cobra.Command{
		Use:   "new FILE",
		Short: "Make a file with one key, which seals at once",
		Long: `Makes a file with one key, which seals at once. Only its owner can read it. A file
that exists is never replaced.

With --print there is no file: the key goes to standard output, for MCPSEAL_KEYS
or a secret store.`,
		Example: `  mcpseal keys new keys
  mcpseal keys new keys --recipient age1…   encrypted for who holds the identity
  mcpseal keys new --print                  for MCPSEAL_KEYS`,
		ValidArgsFunction: oneFile,
		Args: func(cmd *cobra.Command, args []string) error {
			if onlyPrint {
				return exactly()(cmd, args)
			}
			return exactly("FILE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if onlyPrint {
				fmt.Fprintln(cmd.OutOrStdout(), mcpseal.GenerateKey().Reveal())
				return nil
			}
			now := time.Now().UTC().Truncate(time.Millisecond)
			d := new(keyfile.Document)
			k, err := secrets.makeKey(cmd, d, now, now)
			if err != nil {
				return err
			}
			if err := d.Add(k); err != nil {
				return fileError(args[0], err)
			}
			if err := keyfile.Create(args[0], d); errors.Is(err, keyfile.ErrExists) {
				return no("%s: %w; add or rotate changes it", args[0], err)
			} else if err != nil {
				return fileError(args[0], err)
			}
			view := viewOf(args[0], d, now)
			view.Done = fmt.Sprintf("made %s with key %s", args[0], k.ID)
			return view.print(cmd)
		},
	}
	secrets.flags(cmd)
	secrets.stdinFlag(cmd)
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "print a new key, in the clear, and make no file")
	cmd.MarkFlagsMutuallyExclusive("print", "stdin")
	cmd.MarkFlagsMutuallyExclusive("print", "recipient")
	cmd.MarkFlagsMutuallyExclusive("print", "recipients-file")
	cmd.MarkFlagsMutuallyExclusive("print", "wrap")
	return cmd
}

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

func newKeysRevoke() *cobra.Command {
	var secrets secrets
	var room room
	var replace bool
	cmd := &cobra.Command{
		Use:   "revoke FILE ID",
		Short: "End a key now: its tokens are rejected from then on",
		Long: `Takes the secret of a key out of the file. Every replica that gets the file
rejects the tokens that the key sealed; their users start over. The id stays in the
file for a while, so that the key does not come back by mistake.

A key that seals now needs a successor first: --replace makes one that seals at
once. Replicas that do not have the file yet reject its tokens until they do.`,
		Example: `  mcpseal keys revoke keys 3f2a91c0
  mcpseal keys revoke keys 3f2a91c0 --replace`,
		Args:              exactly("FILE", "ID"),
		ValidArgsFunction: completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[1])
			if err := errors.Join(err, room.check()); err != nil {
				return err
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time) (string, error) {
				schedule := d.Schedule()
				k := d.Find(id)
				if k == nil {
					return "", no("there is no key %s in the file", id)
				}
				done := fmt.Sprintf("revoked key %s; bring the file to every replica now", id)
				if schedule.Sealing(now) == k {
					if !replace {
						return "", no("key %s seals now, so nothing could be sealed without it; add --replace to make a key that takes over at once", id)
					}
					next, err := secrets.makeKey(cmd, d, now, now)
					if err != nil {
						return "", err
					}
					if err := d.Add(next); err != nil {
						return "", err
					}
					done += fmt.Sprintf("; key %s seals", next.ID)
				}
				d.Revoke(id, now)
				extend(d.Schedule(), now, room.Room)
				return done, d.Schedule().Check(now, keyfile.Room{})
			})
		},
	}
	secrets.flags(cmd)
	room.flags(cmd)
	cmd.Flags().BoolVar(&replace, "replace", false, "make a key that seals at once, if this one seals now")
	return cmd
}

// extend lets keys open longer whose successor is gone: they seal for longer.
func extend(s keyfile.Schedule, now time.Time, room keyfile.Room) {
	for i, k := range s {
		switch {
		case k.OpensUntil.IsZero() || !k.Opens(now):
		case i == len(s)-1:
			k.OpensUntil = time.Time{}
		default:
			if needed := s[i+1].SealsFrom.Add(room.Span()); now.Before(s[i+1].SealsFrom) && k.OpensUntil.Before(needed) {
				k.OpensUntil = needed
			}
		}
	}
}

func newKeysPrune() *cobra.Command {
	const keepRevoked = 30 * 24 * time.Hour
	return &cobra.Command{
		Use:               "prune FILE",
		Short:             "Take out keys that open nothing any more",
		Long:              `Takes out keys that open nothing any more, and the ids of keys that were revoked more than 30 days ago.`,
		Args:              exactly("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time) (string, error) {
				keys, ids := 0, 0
				for _, k := range d.Keys() {
					if !k.Opens(now) {
						d.Remove(k.ID)
						keys++
					}
				}
				for _, r := range d.Revoked() {
					if now.Sub(r.At) > keepRevoked {
						d.Remove(r.ID)
						ids++
					}
				}
				return fmt.Sprintf("took out %s and %s", count(keys, "key"), count(ids, "revoked id")), d.Schedule().Check(now, keyfile.Room{})
			})
		},
	}
}

// completeID completes the file, and then the ids in it.
func completeID(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return oneFile(cmd, args, "")
	}
	d, err := keyfile.Read(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	now := time.Now()
	for _, k := range d.Keys() {
		ids = append(ids, fmt.Sprintf("%s\t%s, made %s ago", k.ID, d.Schedule().Phase(k, now), span(now.Sub(k.Made))))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
