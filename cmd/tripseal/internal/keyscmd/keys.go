// Package keyscmd is the command tripseal keys.
package keyscmd

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// New returns the command tripseal keys.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, rotate and revoke the keys that a fleet shares",
		Long: `Works on a file of keys, which services read with keys.OpenFile and follow while
they run. Every key has dates: from when it seals, and until when it opens. So a
rotation needs only one distribution of the file:

    tripseal keys new keys             once; bring the file to every replica

    tripseal keys rotate keys --in 1h  a new key that seals in an hour; bring
                                       the file to every replica by then
    tripseal keys list keys            what happens next, and when

The rest goes by the clock: every replica learns to open with the new key when it
gets the file, seals with it an hour later, and drops the old key once its last
token has expired. Give --ttl once, to new or rotate, if tokens or cursors live
longer than an hour: the file remembers it.

If a key leaked:

    tripseal keys revoke keys ID --replace

Every replica that gets the file rejects what the key sealed; users start over.

The file is all that a replica knows. Keep one file, change only that one, and bring
it to every replica: an older copy brings back what the newer one took out.

` + cli.ExitCodes,
	}
	cli.MustHaveCommand(cmd)
	cmd.PersistentFlags().Bool("json", false, "print JSON")
	cmd.AddCommand(newNew(), newRotate(), newRevoke(), newList(), newCheck(), newWrap())
	return cmd
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// update changes the file of keys at the given path and prints the result. The function change
// makes the changes, and notes in the view what it did.
func update(cmd *cobra.Command, path string, change func(d *keyfile.Document, now time.Time, view *fileView) error) error {
	var did, view fileView
	err := keyfile.Update(path, func(d *keyfile.Document) error {
		now := now() // other commands may have changed the file while this one waited
		if err := change(d, now, &did); err != nil {
			return err
		}
		view = viewOf(path, d, now)
		return nil
	})
	if err != nil {
		return keyuse.FileError(path, err)
	}
	view.Done, view.Added, view.DeliverBefore = did.Done, did.Added, did.DeliverBefore
	view.Warnings = append(view.Warnings, did.Warnings...)
	return view.print(cmd)
}

// room holds the flags --ttl and --skew. They determine how long an old key must still open
// tokens.
type room struct{ keyfile.Room } // a field is 0 if its flag was not given

func (r *room) flags(cmd *cobra.Command) {
	cmd.Flags().Var(cli.Between(&r.TTL, time.Millisecond, keyfile.MaxTTL), "ttl",
		"longest TTL of what the keys seal, cursors included (default what the file says, or 1h)")
	cmd.Flags().Var(cli.Between(&r.Skew, time.Millisecond, keyfile.MaxSkew), "skew",
		"how far the clocks of the replicas may be off (default what the file says, or 1m)")
}

// forChange returns the lifetime of tokens and the clock skew with which a command changes the
// file: the larger of what the file and the flag say, or the usual value if neither says any.
func (r *room) forChange(d *keyfile.Document) keyfile.Room {
	room := d.Room().AtLeast(r.Room)
	return keyfile.Room{TTL: cmp.Or(room.TTL, keyfile.UsualTTL), Skew: cmp.Or(room.Skew, keyfile.UsualSkew)}
}

// forLoading returns the lifetime of tokens and the clock skew with which services judge the file:
// the larger of what the file and the flag say. The flag stands for the service's keys.Options, so
// without it the usual value counts.
func (r *room) forLoading(d *keyfile.Document) keyfile.Room {
	return d.Room().AtLeast(keyfile.Room{TTL: cmp.Or(r.TTL, keyfile.UsualTTL), Skew: cmp.Or(r.Skew, keyfile.UsualSkew)})
}
