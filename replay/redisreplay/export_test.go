package redisreplay

import (
	"context"
	"time"

	"github.com/tripseal/tripseal"
)

// Unguarded is a store that believes every answer of Redis. The table of the operations
// page compares it with a Store.
type Unguarded struct{ *Store }

func (u Unguarded) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	by, err := u.spend(ctx, &use)
	return by != nil, err
}

// Look checks the epoch of every server once more.
func (s *Store) Look(ctx context.Context) error {
	s.mu.Lock()
	var all []*server
	for _, server := range s.servers {
		all = append(all, server)
	}
	s.mu.Unlock()
	for _, server := range all {
		if _, err := server.look(ctx, 0, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// Backdate returns the text of an epoch with a new date. This date may also be later than the old
// one.
func Backdate(text string, date time.Time) string {
	e, ok := parseEpoch(text)
	if !ok {
		panic("not an epoch: " + text)
	}
	e.made = date
	return e.String()
}

const LookEvery = lookEvery
