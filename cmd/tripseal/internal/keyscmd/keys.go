// Package keyscmd is the command tripseal keys.
package keyscmd

import (
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
