package keyscmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newNew() *cobra.Command {
	var secret newSecret
	var room room
	var onlyPrint bool
	cmd := &cobra.Command{
		Use:   "new FILE",
		Short: "Make a file with one key, which seals at once",
		Long: `Makes a file with one key, which seals at once. Only its owner can read it. A file
that exists is never replaced. If tokens or cursors live for longer than an hour,
say so with --ttl: the file remembers it.

With --print there is no file: the key goes to standard output, for TRIPSEAL_KEYS
or a secret store.`,
		Example: `  tripseal keys new keys
  tripseal keys new keys --ttl 24h           tokens live for up to a day
  tripseal keys new keys --recipient age1…   encrypted for one age identity
  tripseal keys new --print                  for TRIPSEAL_KEYS`,
		Args: func(cmd *cobra.Command, args []string) error {
			if onlyPrint {
				return cli.ExactArgs()(cmd, args)
			}
			return cli.ExactArgs("FILE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if key := tripseal.GenerateKey(); onlyPrint && forProgram(cmd) {
				return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"id": key.ID().String(), "key": key.Reveal()})
			} else if onlyPrint {
				fmt.Fprintln(cmd.OutOrStdout(), key.Reveal())
				return nil
			}
			k, err := secret.make(cmd)
			if err != nil {
				return err
			}
			now := now()
			k.Made, k.SealsFrom = now, now
			d := new(keyfile.Document)
			d.Add(k)
			d.Raise(room.Room)
			if err := keyfile.Create(args[0], d); errors.Is(err, keyfile.ErrExists) {
				return cli.No("%s: %w; rotate changes it", cli.Named(args[0]), err)
			} else if err != nil {
				return keyuse.FileError(args[0], err)
			}
			view := viewOf(args[0], d, now)
			view.Done = fmt.Sprintf("made %s with key %s", cli.Named(args[0]), k.ID)
			view.Added = k.ID.String()
			return view.print(cmd)
		},
	}
	secret.flags(cmd)
	secret.stdinFlag(cmd)
	room.flags(cmd)
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "print a new key, in the clear, and make no file")
	for _, other := range []string{"stdin", "recipient", "recipients-file", "wrap", "ttl", "skew"} {
		cmd.MarkFlagsMutuallyExclusive("print", other)
	}
	return cmd
}

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
