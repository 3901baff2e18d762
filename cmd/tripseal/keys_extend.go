package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeysExtend() *cobra.Command {
	var room room
	var until string
	cmd := &cobra.Command{
		Use:   "extend FILE [ID]",
		Short: "Let keys open for longer",
		Long: `Lets the keys in the file open for as long as tokens live: for --ttl, which the file
then remembers, or for the lifetime that the file has already. A key that has expired
opens again if one of its tokens may not have expired. With an ID and --until, extends
only that key, until that time.

A service that is started with a longer TTL than the file has room for names this
command in its error. A key never ends earlier than before; to end one, revoke it.`,
		Example: `  tripseal keys extend keys --ttl 2h
  tripseal keys extend keys 3f2a91c0 --until 2026-07-28T18:00:00Z`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs("FILE")(cmd, args)
		},
		ValidArgsFunction: completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 2) != (until != "") {
				return errors.New("an ID and --until belong together; --ttl extends all keys")
			}
			if err := room.check(); err != nil {
				return err
			}
			if len(args) == 2 {
				return extendOne(cmd, args[0], args[1], until)
			}
			return update(cmd, args[0], func(d *keyfile.Document, now time.Time, did *fileView) error {
				needed := room.forChange(d)
				did.Warnings = room.warnings(d)
				d.Raise(room.Room)
				did.noteExtended(d.Extend(now, needed))
				return d.Check(now, needed)
			})
		},
	}
	room.flags(cmd)
	cmd.Flags().StringVar(&until, "until", "", "until when the key with ID opens, such as 2026-07-28T18:00:00Z")
	cmd.MarkFlagsMutuallyExclusive("until", "ttl")
	cmd.MarkFlagsMutuallyExclusive("until", "skew")
	return cmd
}

// extendOne changes the file so that one key opens tokens until the given time.
func extendOne(cmd *cobra.Command, path, name, until string) error {
	id, err := parseID(name)
	if err != nil {
		return err
	}
	end, err := time.Parse(time.RFC3339, until)
	if err != nil {
		return usage("--until is not a time such as 2026-07-28T18:00:00Z")
	}
	return update(cmd, path, func(d *keyfile.Document, now time.Time, did *fileView) error {
		k := d.Find(id)
		switch {
		case k == nil && d.FindRevoked(id) != nil:
			return no("key %s was revoked, and its secret is gone", id)
		case k == nil:
			return no("there is no key %s in the file", id)
		case k.OpensUntil.IsZero():
			return no("key %s has no end", id)
		case !end.After(k.OpensUntil) || !end.After(now):
			return no("key %s opens until %s UTC; --until is not later than that and now", id, clock(k.OpensUntil))
		}
		k.OpensUntil = end.UTC().Truncate(time.Millisecond)
		did.noteExtended([]*keyfile.Key{k})
		return d.Check(now, keyfile.Room{})
	})
}

// noteExtended sets v.Done, a text that names the keys that now open tokens for longer.
func (v *fileView) noteExtended(keys []*keyfile.Key) {
	if len(keys) == 0 {
		v.Done = "every key opens for long enough"
		return
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.ID.String())
	}
	v.Done = fmt.Sprintf("extended %s; bring the file to every replica", strings.Join(ids, " "))
}
