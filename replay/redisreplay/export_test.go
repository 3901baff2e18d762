package redisreplay

import (
	"context"
	"time"

	"github.com/mcpseal/mcpseal"
)

// Unguarded is the store as it would be if it believed every answer: the table
// of the operations page compares the two.
type Unguarded struct{ *Store }

func (u Unguarded) Spend(ctx context.Context, use mcpseal.Use) (bool, error) {
	by, err := u.spend(ctx, &use)
	return by != nil, err
}

// Look looks at every server once more.
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

// Backdate returns an epoch that was made earlier, or later.
func Backdate(text string, made time.Time) string {
	e, ok := parseEpoch(text)
	if !ok {
		panic("not an epoch: " + text)
	}
	e.made = made
	return e.String()
}

const LookEvery = lookEvery
