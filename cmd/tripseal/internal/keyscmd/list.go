package keyscmd

import (
	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// maxSeals is how many values a key may seal for one purpose. The purposes are states, cursors and
// handles.
const maxSeals = 1 << 32

func newList() *cobra.Command {
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
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, d, err := look(args[0])
			if err != nil {
				return err
			}
			problem := d.Check(view.now, room.forLoading(d))
			if problem != nil {
				view.OK, view.Problem = false, problem.Error()
			}
			for _, k := range view.Keys {
				if seals := rate * view.now.Sub(k.SealsFrom).Seconds(); k.Phase == keyuse.Sealing && seals > maxSeals/2 {
					view.warn("at %g seals a second (--rate) key %s may have made %.1f %% of its 2^32 seals: rotate", rate, k.ID, 100*seals/maxSeals)
				}
			}
			if err := view.print(cmd); err != nil {
				return err
			}
			if problem != nil {
				return cli.No("%s would not load: %w", cli.Named(args[0]), problem)
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
		return viewOf(path, nil, now()), nil, keyuse.FileError(path, err)
	}
	view := viewOf(path, d, now())
	if mode, exposed := keyfile.Exposed(path); exposed {
		view.warn("others can read or change the file (mode %04o): chmod 600 it", mode)
	}
	return view, d, nil
}
