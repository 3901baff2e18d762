package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

func newKeysPrune() *cobra.Command {
	const keepRevoked = 30 * 24 * time.Hour
	return &cobra.Command{
		Use:               "prune FILE",
		Short:             "Take out keys that open nothing any more",
		Long:              `Takes out keys that open nothing any more, and the ids of keys that were revoked more than 30 days ago.`,
		Args:              exactly("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time) (string, error) {
				keys, ids := 0, 0
				for _, k := range d.Keys() {
					if !k.Opens(now) {
						d.Remove(k.ID)
						keys++
					}
				}
				for _, r := range d.Revoked() {
					if now.Sub(r.At) > keepRevoked {
						d.Remove(r.ID)
						ids++
					}
				}
				return fmt.Sprintf("took out %s and %s", count(keys, "key"), count(ids, "revoked id")), d.Schedule().Check(now, keyfile.Room{})
			})
		},
	}
}
