package keyscmd

import (
	"errors"
	"fmt"

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
