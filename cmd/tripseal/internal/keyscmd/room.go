package keyscmd

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// room holds the flags --ttl and --skew. They determine how long an old key must still open
// tokens.
type room struct{ keyfile.Room } // a field is 0 if its flag was not given

func (r *room) flags(cmd *cobra.Command) {
	cmd.Flags().Var(cli.Between(&r.TTL, time.Millisecond, keyfile.MaxTTL), "ttl",
		"longest TTL of what the keys seal, cursors included (default what the file says, or 1h)")
	cmd.Flags().Var(cli.Between(&r.Skew, time.Millisecond, keyfile.MaxSkew), "skew",
		"how far the clocks of the replicas may be off (default what the file says, or 1m)")
}

// forChange returns the lifetime of tokens and the clock skew with which a command changes the
// file: the larger of what the file and the flag say, or the usual value if neither says any.
func (r *room) forChange(d *keyfile.Document) keyfile.Room {
	room := d.Room().AtLeast(r.Room)
	return keyfile.Room{TTL: cmp.Or(room.TTL, keyfile.UsualTTL), Skew: cmp.Or(room.Skew, keyfile.UsualSkew)}
}

// forLoading returns the lifetime of tokens and the clock skew with which services judge the file:
// the larger of what the file and the flag say. The flag stands for the service's keys.Options, so
// without it the usual value counts.
func (r *room) forLoading(d *keyfile.Document) keyfile.Room {
	return d.Room().AtLeast(keyfile.Room{TTL: cmp.Or(r.TTL, keyfile.UsualTTL), Skew: cmp.Or(r.Skew, keyfile.UsualSkew)})
}
