package keyscmd

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newRevoke() *cobra.Command {
	var secret newSecret
	var room room
	var replace, all bool
	cmd := &cobra.Command{
		Use:   "revoke FILE ID… | revoke FILE --all",
		Short: "End keys now: their tokens are rejected from then on",
		Long: `Takes the secrets of keys out of the file. Every replica that gets the file
rejects the tokens that they sealed; their users start over. The ids stay in the
file, so that the keys do not come back by mistake.

A key that seals now needs a successor: --replace makes one that seals at once.
Replicas reject the successor's tokens until they have the file.

If the file itself leaked, now or earlier, revoke all keys in it: --all does
that. A replica that accepts a forged token seals the next round with its
present key, so keys that were made after the leak must go too.`,
		Example: `  tripseal keys revoke keys --all --replace        the file leaked
  tripseal keys revoke keys 3f2a91c0 --replace     one key leaked, a moment ago`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return cli.ExactArgs("FILE")(cmd, args)
			}
			return cli.ExactArgs("FILE", "ID")(cmd, args[:min(len(args), 2)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []tripseal.KeyID
			for _, text := range args[1:] {
				id, err := hex.DecodeString(text)
				if err != nil || len(id) != len(tripseal.KeyID{}) {
					return cli.Usage("%s is not the id of a key: eight hexadecimal digits, as tripseal keys list shows them", cli.QuotedArgument(text))
				}
				ids = append(ids, tripseal.KeyID(id))
			}
			var successor *keyfile.Key
			if replace {
				var err error
				if successor, err = secret.make(cmd); err != nil {
					return err
				}
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				if all {
					for _, k := range d.Keys() {
						ids = append(ids, k.ID)
					}
				}
				if sealer := d.Schedule().SealerAt(now); sealer != nil && slices.Contains(ids, sealer.ID) {
					if successor == nil {
						return cli.No("key %s seals now, so nothing could be sealed without it; add --replace to make a key that takes over at once", sealer.ID)
					}
					if err := secret.fits(d, successor); err != nil {
						return err
					}
					successor.Made, successor.SealsFrom = now, now
					did.noteAdded(successor)
					d.Add(successor)
				}
				return revoke(d, ids, now, did, room.forChange(d))
			})
		},
	}
	secret.flags(cmd)
	room.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "revoke every key in the file")
	cmd.Flags().BoolVar(&replace, "replace", false, "make a key that seals at once, if one of these seals now")
	return cmd
}

// revoke takes keys out of the file, which has a successor already if one of them seals.
func revoke(d *keyfile.Document, ids []tripseal.KeyID, now time.Time, did *fileView, room keyfile.Room) error {
	revoked := []string{"revoked"}
	for _, id := range ids {
		switch before := slices.ContainsFunc(d.Revoked(), func(r keyfile.Revocation) bool { return r.ID == id }); {
		case d.Find(id) != nil:
			d.Revoke(id, now, room)
			revoked = append(revoked, id.String())
		case before:
			did.warn("%s was revoked before", id)
		default:
			return cli.No("there is no key %s in the file", id)
		}
	}
	did.Done = strings.Join(revoked, " ") + "; bring the file to every replica now"
	if did.Added != "" {
		did.Done += fmt.Sprintf("; key %s seals", did.Added)
	}
	for _, k := range d.Keys() {
		if k.ID.String() != did.Added && k.Opens(now) {
			did.warn("%s still opens: if the whole file leaked, run revoke --all --replace", k.ID)
		}
	}
	return d.Check(now, keyfile.Room{}) // for any lifetime of tokens, because an error leaves a leaked key in the file
}
