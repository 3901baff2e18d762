package main

import (
	"encoding/hex"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeys() *cobra.Command {
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

` + exitCodes,
	}
	mustHaveCommand(cmd)
	cmd.PersistentFlags().Bool("json", false, "print JSON")
	cmd.AddCommand(newKeysNew(), newKeysAdd(), newKeysRotate(), newKeysExtend(), newKeysRevoke(), newKeysList(), newKeysCheck(), newKeysPrune())
	return cmd
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// update changes the file of keys at the given path and prints the result. The function change
// makes the changes, and notes in the view what it did.
func update(cmd *cobra.Command, path string, change func(d *keyfile.Document, now time.Time, view *fileView) error) error {
	now := now()
	var did, view fileView
	before, after, err := keyfile.Update(path, func(d *keyfile.Document) error {
		if err := change(d, now, &did); err != nil {
			return err
		}
		view = viewOf(path, d, now)
		return nil
	})
	if err != nil {
		return fileError(path, err)
	}
	view.copyDone(did)
	if before != after {
		view.warn("the mode of the file was %04o and is %04o now", before, after)
	}
	return view.print(cmd)
}

// fileError returns err with the file's name and an exit code.
func fileError(path string, err error) error {
	var exit *exitError
	var problem *keyfile.Problem
	switch {
	case errors.As(err, &exit):
		return err
	case errors.As(err, &problem), errors.Is(err, keyfile.ErrExists), errors.Is(err, keyfile.ErrTooLong):
		return no("%s: %w", named(path), err)
	case errors.Is(err, keyfile.ErrChanged), errors.Is(err, keyfile.ErrLocked), errors.Is(err, keyfile.ErrBusy):
		return failed("%s: %w; try again", named(path), err)
	}
	return failed("%s: %w", named(path), err)
}

// parseID parses the id of a key from the command line.
func parseID(text string) (id tripseal.KeyID, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		return id, usage("%s is not the id of a key: eight hexadecimal digits, as tripseal keys list shows them", quotedArgument(text))
	}
	return tripseal.KeyID(raw), nil
}

// oneFile makes the shell complete the first argument as the name of a file, and suggest
// nothing for further arguments.
func oneFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
