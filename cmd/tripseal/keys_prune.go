package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeysPrune() *cobra.Command {
	return &cobra.Command{
		Use:   "prune FILE",
		Short: "Take out keys that open nothing any more",
		Long: `Takes out keys that have expired by the clock of every replica, and the ids of keys
that were revoked more than 30 days ago, unless an older key is still in the file. A
key that still opens is never taken out: revoke does that.`,
		Args:              exactArgs("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				keys, ids := d.Prune(now)
				did.Done = fmt.Sprintf("took out %s and %s", count(keys, "key"), count(ids, "revoked id"))
				return d.Check(now, keyfile.Room{})
			})
		},
	}
}
