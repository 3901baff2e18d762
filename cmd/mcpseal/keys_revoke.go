package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

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
