package main

import (
	"errors"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/internal/keyfile"
)

// maxSeals is how many values a key may seal for one purpose. The purposes are states, cursors and
// handles.
const maxSeals = 1 << 32

func newKeysList() *cobra.Command {
	var room room
	var rate float64
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "Show the keys, what each does now, and what happens next",
		Long: `Shows the keys, what each does now, and what happens next, but never a secret.

    waiting  opens, and will seal     opening  opens what it sealed
    sealing  opens and seals          retired  opens nothing

A key is good for 2³² seals over the whole fleet. --rate says how many seals the
fleet makes a second; a warning names a key that may have made half of its 2³².

Exit code 1 means that services would not load the file.`,
		Args:              exactArgs("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := room.check(); err != nil {
				return err
			}
			if rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
				return errors.New("--rate must be a number of seals a second, 0 or more")
			}
			view, d, err := look(args[0])
			if err != nil {
				return err
			}
			problem := d.Check(view.now, room.forLoading(d))
			if problem != nil {
				view.OK, view.Problem = false, withRepair(args[0], problem)
			}
			for _, k := range view.Keys {
				if k.Phase != keyfile.Sealing {
					continue
				}
				if seals := rate * view.now.Sub(k.SealsFrom).Seconds(); seals > maxSeals/2 {
					view.warn("at %g seals a second (--rate) key %s may have made %.1f %% of its 2^32 seals: rotate", rate, k.ID, 100*seals/maxSeals)
				}
			}
			if err := view.print(cmd); err != nil {
				return err
			}
			if problem != nil {
				return no("%s would not load: %s", named(args[0]), view.Problem)
			}
			return nil
		},
	}
	room.flags(cmd)
	cmd.Flags().Float64Var(&rate, "rate", 100, "seals a second over the whole fleet; 0 turns the warning off")
	return cmd
}

// look reads the file of keys. It returns a view of the file, with warnings, and the parsed
// file.
func look(path string) (fileView, *keyfile.Document, error) {
	d, err := keyfile.Read(path)
	if err != nil {
		return emptyView(path), nil, fileError(path, err)
	}
	view := viewOf(path, d, now())
	for _, how := range keyfile.Exposed(path, userOf(path)) {
		view.warn("%s", how)
	}
	for _, left := range keyfile.LeftBehind(path) {
		view.warn("%s holds secrets of a command that was killed or still runs: remove it when no command runs", named(left))
	}
	return view, d, nil
}

// userOf returns the id of the user who needs to read a file: the user who runs the
// command or, if that is root, the owner of the file.
func userOf(path string) int {
	if os.Geteuid() == 0 {
		if uid, ok := keyfile.Owner(path); ok {
			return uid
		}
	}
	return os.Geteuid()
}

// withRepair returns the text of an error. If a command can repair the file, the text ends with
// that command.
func withRepair(path string, err error) string {
	var short *keyfile.TooShort
	if errors.As(err, &short) {
		return err.Error() + "; run: " + short.Repair(path)
	}
	return err.Error()
}
