package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
	"github.com/mcpseal/mcpseal/keys/agekeys"
)

func newKeysCheck() *cobra.Command {
	var room room
	var identity, against string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a file would load, and what would change",
		Long: `Says whether a service would take the file into use, and what will happen then. With
--against, what would change for one that uses another file now. Exit code 1 means
that it would not load.`,
		Example: `  mcpseal keys check new-keys --against /etc/release/keys`,
		Args:    exactly("FILE"), ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := room.check(); err != nil {
				return err
			}
			view, d, err := look(args[0])
			if err != nil {
				return err
			}
			if err := d.Schedule().Check(view.now, room.Room); err != nil {
				return no("%s would not load: %w", args[0], err)
			}
			if identity != "" || !hasWrapped(d) {
				ring, err := unwrapAll(cmd.Context(), d, identity)
				if err == nil {
					_, err = mcpseal.NewRing(ring...)
				}
				if err != nil {
					return no("%s would not load: %w", args[0], err)
				}
			} else {
				view.warn("the secrets are wrapped and were not looked at; give --identity to do so")
			}
			view.Done = args[0] + " would load"
			if against != "" {
				_, old, err := look(against)
				if err != nil {
					return err
				}
				view.Done += fmt.Sprintf("; compared with %s:%s", against, differences(old, d, view.now))
			}
			return view.print(cmd)
		},
	}
	room.flags(cmd)
	cmd.Flags().StringVar(&identity, "identity", "", "a file of age identities, to look at secrets that are wrapped")
	cmd.Flags().StringVar(&against, "against", "", "the file that is in use")
	return cmd
}

// differences is what changes for a service that reads d instead of old.
func differences(old, d *keyfile.Document, now time.Time) string {
	text := ""
	line := func(format string, args ...any) { text += "\n  " + fmt.Sprintf(format, args...) }
	was, is := old.Schedule().Sealing(now), d.Schedule().Sealing(now)
	if was != nil && is != nil && was.ID != is.ID {
		line("%s seals instead of %s", is.ID, was.ID)
		if old.Find(is.ID) == nil {
			line("%s is new and seals at once: replicas without the file reject its tokens", is.ID)
		}
	}
	for _, k := range d.Keys() {
		before := old.Find(k.ID)
		switch {
		case before == nil && k.Opens(now):
			line("%s is new", k.ID)
		case before != nil && !before.OpensUntil.Equal(k.OpensUntil):
			line("%s opens until %s, not %s", k.ID, untilWords(k), untilWords(before))
		case before != nil && !before.SealsFrom.Equal(k.SealsFrom):
			line("%s seals from %s, not %s", k.ID, clock(k.SealsFrom), clock(before.SealsFrom))
		}
	}
	for _, k := range old.Keys() {
		if d.Find(k.ID) == nil && k.Opens(now) {
			line("%s is gone: its tokens are rejected", k.ID)
		}
	}
	if text == "" {
		return " nothing changes"
	}
	return text
}

func untilWords(k *keyfile.Key) string {
	if k.OpensUntil.IsZero() {
		return "never ends"
	}
	return clock(k.OpensUntil)
}

func hasWrapped(d *keyfile.Document) bool {
	for _, k := range d.Keys() {
		if k.Secret.Wrapped() {
			return true
		}
	}
	return false
}

// unwrapAll returns the keys of a file, past ones too.
func unwrapAll(ctx context.Context, d *keyfile.Document, identity string) ([]mcpseal.Key, error) {
	var unwrappers []keyfile.Unwrapper
	if identity != "" {
		unwrapper, err := agekeys.IdentityFile(identity)
		if err != nil {
			return nil, err
		}
		unwrappers = append(unwrappers, unwrapper)
	}
	var all []mcpseal.Key
	for _, k := range d.Keys() {
		key, err := k.Open(ctx, unwrappers)
		if err != nil {
			return nil, err
		}
		all = append(all, key)
	}
	return all, nil
}
