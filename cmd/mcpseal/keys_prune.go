package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// keepRevoked is how long the id of a revoked key stays at least.
const keepRevoked = 30 * day

func newKeysPrune() *cobra.Command {
	return &cobra.Command{
		Use:   "prune FILE",
		Short: "Take out keys that open nothing any more",
		Long: `Takes out keys that open nothing any more, and the ids of keys that were revoked more
than 30 days ago, unless an older key is still there.`,
		Args:              exactly("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				keys, ids := 0, 0
				for _, k := range d.Keys() {
					if !k.Opens(now) {
						d.Remove(k.ID)
						keys++
					}
				}
				for _, r := range d.Revoked() {
					// While an older key is there, this one says when it stopped to seal.
					first := d.Schedule()
					if now.Sub(r.At) > keepRevoked && (len(first) == 0 || !first[0].SealsFrom.Before(r.SealsFrom)) {
						d.Remove(r.ID)
						ids++
					}
				}
				did.Done = fmt.Sprintf("took out %s and %s", count(keys, "key"), count(ids, "revoked id"))
				return d.Check(now, keyfile.Room{})
			})
		},
	}
}
