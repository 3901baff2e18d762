package keyscmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newRotate() *cobra.Command {
	var secret newSecret
	var in time.Duration
	var room room
	cmd := &cobra.Command{
		Use:   "rotate FILE",
		Short: "Add the next key, and set when the old one ends",
		Long: `Adds a key that begins to seal after --in. From then on, the key before it opens for
the longest lifetime of a token plus twice the clock skew. Bring the file to every
replica within the time of --in; the clock does the rest. A key that has opened
nothing for 30 days leaves the file.

The file remembers --ttl and --skew, so they need to be given only once, and again
when they grow. Keys that still open then open for longer too.

A rotation is under way until the new key seals, --in after it was made. Until
then the next one is refused, with exit code 1. To start over, revoke the key that
is waiting.`,
		Example: `  tripseal keys rotate keys
  tripseal keys rotate keys --in 30m --ttl 24h`,
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := secret.make(cmd)
			if err != nil {
				return err
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				sealer := d.Schedule().SealerAt(now)
				for _, other := range d.Keys() {
					if now.Before(other.SealsFrom) && other.Opens(now) && other != sealer {
						return cli.No("a rotation is under way: key %s takes over at %s; rotate again after that, or give up key %s first: "+
							"tripseal keys revoke %s %s", other.ID, cli.TimeText(other.SealsFrom, now), other.ID, cli.Named(args[0]), other.ID)
					}
				}
				if err := secret.fits(d, k); err != nil {
					return err
				}
				k.Made, k.SealsFrom = now, now.Add(in)
				needed := room.forChange(d)
				if did.noteAdded(k); in < needed.Skew {
					did.warn("--in %v is less than the clock skew of %v: until every replica has the file, some reject what others seal", in, needed.Skew)
				}
				d.Raise(room.Room)
				return d.Rotate(k, now, needed)
			})
		},
	}
	secret.flags(cmd)
	secret.stdinFlag(cmd)
	in = time.Hour
	cmd.Flags().Var(cli.Between(&in, 0, keyfile.MaxTTL), "in", "when the new key begins to seal; the file must reach every replica before")
	room.flags(cmd)
	return cmd
}

// noteAdded notes two things in the view: the file's new key, and the time by which every
// replica must have the file.
func (v *fileView) noteAdded(k *keyfile.Key) {
	v.Added, v.DeliverBefore = k.ID.String(), &k.SealsFrom
	v.Done = fmt.Sprintf("added key %s; bring the file to every replica before %s UTC", k.ID, cli.Clock(k.SealsFrom))
	if k.SealsFrom.Equal(k.Made) {
		v.Done = fmt.Sprintf("added key %s, which seals now; bring the file to every replica at once", k.ID)
	}
}
