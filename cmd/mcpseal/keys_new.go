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
