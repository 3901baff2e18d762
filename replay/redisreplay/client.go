package redisreplay

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkClient returns an error if a token could be spent twice with this client, or if
// Spend could take longer than its context allows.
func checkClient(client redis.UniversalClient) error {
	switch c := client.(type) {
	case *redis.Client: // a client of one server, or of a master found by Sentinel
		if c == nil {
			break
		}
		o := c.Options()
		return checkDeadlines(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	case *redis.ClusterClient:
		if c == nil {
			break
		}
		o := c.Options()
		return checkDeadlines(o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	case *redis.Ring:
		return errors.New("redisreplay: the client is a *redis.Ring, which moves keys to another server when one is away, " +
			"so that a token could be spent on both: use a *redis.Client or a *redis.ClusterClient")
	case nil:
	default:
		return fmt.Errorf("redisreplay: the client is a %T, whose options cannot be seen: "+
			"pass the *redis.Client or *redis.ClusterClient itself", client)
	}
	return errors.New("redisreplay: the client is nil; make one with redis.NewClient, redis.NewFailoverClient or redis.NewClusterClient")
}

func checkDeadlines(enabled bool, read, write time.Duration) error {
	if !enabled {
		return errors.New("redisreplay: the client ignores the deadlines of contexts, so that a slow Redis would hold up requests: " +
			"set ContextTimeoutEnabled: true in its options")
	}
	if read < 0 || write < 0 { // go-redis turns the option -1 into 0, and -2 into a negative timeout
		return errors.New("redisreplay: the client's ReadTimeout or WriteTimeout is -2, with which it ignores the deadlines of contexts: " +
			"use -1 for no other timeout")
	}
	return nil
}
