package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

func newKeysCheck() *cobra.Command {
	var room room
	var unwrap unwrap
	var against string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a file would load, and what would change",
		Long: `Says whether a service would take the file into use, and what will happen then. With
--against, what would change for one that uses another file now. Exit code 1 means
that it would not load.`,
		Example:           `  mcpseal keys check new-keys --against /etc/release/keys`,
		Args:              exactly("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := room.check(); err != nil {
				return err
			}
			view, err := check(cmd, args[0], room.Room, &unwrap, against)
			var exit *exitError
			if errors.As(err, &exit) && exit.code == exitNo && forProgram(cmd) {
				view.OK, view.Problem = false, err.Error()
				if err := view.print(cmd); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			return view.print(cmd)
		},
	}
	room.flags(cmd)
	unwrap.flags(cmd)
	cmd.Flags().StringVar(&against, "against", "", "the file that is in use")
	return cmd
}

func check(cmd *cobra.Command, path string, room keyfile.Room, unwrap *unwrap, against string) (fileView, error) {
	view, d, err := look(path)
	if err != nil {
		return view, err
	}
	wouldNot := func(err error) (fileView, error) {
		var exit *exitError
		if errors.As(err, &exit) {
			return view, err
		}
		return view, no("%s would not load: %w", named(path), err)
	}
	if err := d.Check(view.now, room); err != nil {
		return wouldNot(err)
	}
	if scheme := wrappedScheme(d); scheme != "" && !unwrap.given() {
		view.warn("the secrets are wrapped with %s and were not looked at; give %s to do so", scheme, howToUnwrap(scheme))
	} else {
		keys, err := unwrap.all(cmd, d)
		if err == nil {
			_, err = mcpseal.NewRing(keys...)
		}
		if err != nil {
			return wouldNot(err)
		}
	}
	view.Done = named(path) + " would load"
	if against == "" {
		return view, nil
	}
	_, old, err := look(against)
	if err != nil {
		return view, err
	}
	for _, k := range d.Keys() {
		if r := old.FindRevoked(k.ID); r != nil {
			return wouldNot(fmt.Errorf("key %s was revoked in %s (%s)", k.ID, named(against), when(r.At, view.now)))
		}
	}
	view.Changes = differences(old, d, view.now)
	view.Done += "; compared with " + named(against) + ":"
	if len(view.Changes) == 0 {
		view.Done += " nothing changes"
	}
	return view, nil
}

// differences is what changes for a service that reads d instead of old.
func differences(old, d *keyfile.Document, now time.Time) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	was, is := old.Schedule().Sealing(now), d.Schedule().Sealing(now)
	if was != nil && is != nil && was.ID != is.ID {
		line("%s seals instead of %s", is.ID, was.ID)
	}
	for _, k := range d.Keys() {
		before := old.Find(k.ID)
		if before == nil {
			switch {
			case k == is:
				line("%s is new and seals at once: replicas without the file reject its tokens", k.ID)
			case k.Opens(now):
				line("%s is new", k.ID)
			}
			continue
		}
		if !before.SealsFrom.Equal(k.SealsFrom) {
			line("%s seals from %s UTC, before from %s UTC", k.ID, clock(k.SealsFrom), clock(before.SealsFrom))
		}
		if !before.OpensUntil.Equal(k.OpensUntil) {
			line("%s %s, before it %s", k.ID, endOf(k), endOf(before))
		}
	}
	for _, k := range old.Keys() {
		if d.Find(k.ID) == nil && k.Opens(now) {
			line("%s is gone: its tokens are rejected", k.ID)
		}
	}
	return lines
}

func endOf(k *keyfile.Key) string {
	if k.OpensUntil.IsZero() {
		return "has no end"
	}
	return "opens until " + clock(k.OpensUntil) + " UTC"
}
