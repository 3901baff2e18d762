package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeysNew() *cobra.Command {
	var secrets secrets
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
		ValidArgsFunction: oneFile,
		Args: func(cmd *cobra.Command, args []string) error {
			if onlyPrint {
				return exactArgs()(cmd, args)
			}
			return exactArgs("FILE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if key := tripseal.GenerateKey(); onlyPrint && forProgram(cmd) {
				return printJSON(cmd.OutOrStdout(), map[string]string{"id": key.ID().String(), "key": key.Reveal()})
			} else if onlyPrint {
				fmt.Fprintln(cmd.OutOrStdout(), key.Reveal())
				return nil
			}
			if err := room.check(); err != nil {
				return err
			}
			k, err := secrets.make(cmd)
			if err != nil {
				return err
			}
			now := now()
			k.Made, k.SealsFrom = now, now
			d := new(keyfile.Document)
			if err := secrets.add(d, k); err != nil {
				return fileError(args[0], err)
			}
			d.Raise(room.Room)
			if err := keyfile.Create(args[0], d); errors.Is(err, keyfile.ErrExists) {
				return no("%s: %w; add or rotate changes it", named(args[0]), err)
			} else if err != nil {
				return fileError(args[0], err)
			}
			view := viewOf(args[0], d, now)
			view.Done = fmt.Sprintf("made %s with key %s", named(args[0]), k.ID)
			view.Added = k.ID.String()
			view.Warnings = append(view.Warnings, room.warnings(d)...)
			return view.print(cmd)
		},
	}
	secrets.flags(cmd)
	secrets.stdinFlag(cmd)
	room.flags(cmd)
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "print a new key, in the clear, and make no file")
	for _, other := range []string{"stdin", "recipient", "recipients-file", "wrap", "ttl", "skew"} {
		cmd.MarkFlagsMutuallyExclusive("print", other)
	}
	return cmd
}
