package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, rotate and revoke the keys that a fleet shares",
		Long: `Works on a file of keys, which services read with keys.OpenFile and follow while
they run. Every key has dates: from when it seals, and until when it opens. So one
distribution of the file is a whole rotation:

    mcpseal keys new keys             once; bring the file to every replica

    mcpseal keys rotate keys --in 1h  a new key that seals in an hour; bring the
                                      file to every replica within that hour
    mcpseal keys list keys            what happens next, and when

The rest goes by the clock: every replica learns to open with the new key when it
gets the file, seals with it an hour later, and drops the old key once its last
token has expired. Tell --ttl if tokens or cursors live longer than an hour.

If a key leaked, mcpseal keys revoke keys ID --replace ends it at once; tokens
that it sealed are rejected, and their users start over.

` + exitCodes,
	}
	mustHaveCommand(cmd)
	cmd.PersistentFlags().Bool("json", false, "print JSON")
	cmd.AddCommand(newKeysNew(), newKeysAdd(), newKeysRotate(), newKeysRevoke(), newKeysList(), newKeysCheck(), newKeysPrune())
	return cmd
}

// room are the flags that say how long an old key is needed.
type room struct{ keyfile.Room }

func (r *room) flags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&r.TTL, "ttl", time.Hour, "the longest TTL of what the keys seal: of tokens, of tokens for URLs, of cursors")
	cmd.Flags().DurationVar(&r.Skew, "skew", time.Minute, "how far the clocks of the replicas may be off")
}

func (r *room) check() error {
	if r.TTL <= 0 || r.Skew < 0 || r.TTL > 10*365*24*time.Hour || r.Skew > time.Hour {
		return errors.New("--ttl is more than 0 and at most ten years, --skew at most an hour")
	}
	return nil
}

// startFlag is the flag that says when a new key seals.
type startFlag time.Duration

func (s *startFlag) flag(cmd *cobra.Command) {
	cmd.Flags().DurationVar((*time.Duration)(s), "in", time.Hour, "when the new key begins to seal: long enough for the file to reach every replica")
}

func (s startFlag) check() error {
	if s < 0 || time.Duration(s) > 10*365*24*time.Hour {
		return errors.New("--in is not between 0s and ten years")
	}
	return nil
}

// update changes a file and shows what became of it.
func update(cmd *cobra.Command, path string, change func(d *keyfile.Document, now time.Time) (done string, err error)) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	var view fileView
	before, err := keyfile.Update(path, func(d *keyfile.Document) error {
		done, err := change(d, now)
		if err != nil {
			return err
		}
		view = viewOf(path, d, now)
		view.Done = done
		return nil
	})
	if err != nil {
		return fileError(path, err)
	}
	if before != 0o600 {
		view.warn("the mode of the file was %04o and is 0600 now", before)
	}
	return view.print(cmd)
}

// fileError says what is wrong with a file, and with which code to end.
func fileError(path string, err error) error {
	var exit *exitError
	var pathError *os.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &exit):
		return err
	case errors.As(err, &pathError):
		return failed("%s: cannot %s it: %w", path, pathError.Op, pathError.Err)
	case errors.As(err, &linkError):
		return failed("%s: cannot %s it: %w", path, linkError.Op, linkError.Err)
	case errors.Is(err, keyfile.ErrChanged), errors.Is(err, keyfile.ErrLocked), errors.Is(err, keyfile.ErrBusy):
		return failed("%s: %w; try again", path, err)
	case errors.Is(err, keyfile.ErrNotRegular), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return failed("%s: %w", path, err)
	}
	return no("%s: %w", path, err)
}

// parseID reads an id from the command line.
func parseID(text string) (id mcpseal.KeyID, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%q is not the id of a key: eight hexadecimal digits, as mcpseal keys list shows them", text)
	}
	return mcpseal.KeyID(raw), nil
}

// oneFile completes the name of a file once.
func oneFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
