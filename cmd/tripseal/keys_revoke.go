package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeysRevoke() *cobra.Command {
	var secrets secrets
	var room room
	var replace, all bool
	cmd := &cobra.Command{
		Use:   "revoke FILE ID… | revoke FILE --all",
		Short: "End keys now: their tokens are rejected from then on",
		Long: `Takes the secrets of keys out of the file. Every replica that gets the file rejects
the tokens that they sealed; their users start over. The ids stay in the file for a
while, so that the keys do not come back by mistake.

A key that seals now needs a successor: --replace makes one that seals at once.
Replicas reject the successor's tokens until they have the file.

If the file itself leaked, now or earlier, revoke all keys in it: --all does that. A
replica that accepts a forged token seals the next round with its present key, so
keys that were made after the leak must go too.`,
		Example: `  tripseal keys revoke keys --all --replace        the file leaked
  tripseal keys revoke keys 3f2a91c0 --replace     one key leaked, a moment ago`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return exactArgs("FILE")(cmd, args)
			}
			return exactArgs("FILE", "ID")(cmd, args[:min(len(args), 2)])
		},
		ValidArgsFunction: completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []tripseal.KeyID
			for _, text := range args[1:] {
				id, err := parseID(text)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			if err := room.check(); err != nil {
				return err
			}
			var successor *keyfile.Key
			if replace {
				var err error
				if successor, err = secrets.make(cmd); err != nil {
					return err
				}
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				if all {
					for _, k := range d.Keys() {
						ids = append(ids, k.ID)
					}
				}
				return revoke(d, ids, now, did, room.forChange(d), successor, &secrets)
			})
		},
	}
	secrets.flags(cmd)
	room.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "revoke every key in the file")
	cmd.Flags().BoolVar(&replace, "replace", false, "make a key that seals at once, if one of these seals now")
	return cmd
}

// revoke takes keys out of the key file. If one of these keys seals now, revoke also adds the
// successor to the file, or returns an error if the successor is nil.
func revoke(d *keyfile.Document, ids []tripseal.KeyID, now time.Time, did *fileView, room keyfile.Room, successor *keyfile.Key, secrets *secrets) error {
	sealing := d.Schedule().SealerAt(now)
	var revoked, already []string
	for _, id := range ids {
		k := d.Find(id)
		switch {
		case k == nil && d.FindRevoked(id) != nil:
			already = append(already, id.String())
			continue
		case k == nil:
			return no("there is no key %s in the file", id)
		case k == sealing && successor == nil:
			return no("key %s seals now, so nothing could be sealed without it; add --replace to make a key that takes over at once", id)
		case k == sealing:
			successor.Made, successor.SealsFrom = now, now
			if err := secrets.add(d, successor); err != nil {
				return err
			}
			did.noteAdded(successor)
		}
		d.Revoke(id, now)
		revoked = append(revoked, id.String())
	}
	d.Extend(now, room) // after a revocation, the previous key may seal for longer, so it must also open for longer
	did.Done = "revoked " + strings.Join(revoked, " ") + "; bring the file to every replica now"
	if len(revoked) == 0 {
		did.Done = strings.Join(already, " ") + ": revoked already"
	}
	if did.Added != "" {
		did.Done += fmt.Sprintf("; key %s seals", did.Added)
	}
	var left []string
	for _, k := range d.Keys() {
		if k != successor && k.Opens(now) {
			left = append(left, k.ID.String())
		}
	}
	if len(left) > 0 && len(revoked) > 0 {
		did.warn("%s still in use: if the whole file leaked, run revoke --all --replace", strings.Join(left, " "))
	}
	// If a key stops opening tokens before they expire, give a warning and no error: an error
	// would leave a leaked key in the file. The second Check assumes that the lifetime is zero. It
	// returns an error only if the file is wrong for every lifetime.
	if err := d.Check(now, room); err != nil {
		did.warn("services whose tokens live for %v would not load the file: %v", room.TTL, err)
	}
	return d.Check(now, keyfile.Room{})
}

// completeID makes the shell complete the first argument as the name of a file, and the
// others as ids of keys in that file.
func completeID(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return oneFile(cmd, args, "")
	}
	d, err := keyfile.Read(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, k := range d.Keys() {
		ids = append(ids, fmt.Sprintf("%s\t%s, made %s ago", k.ID, d.Schedule().Phase(k, now()), span(now().Sub(k.Made))))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
