package redisreplay

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// settle reads the server's epoch into l. It first makes a new epoch if there is none, or if
// the server may have forgotten used tokens since the epoch was made.
func (s *server) settle(ctx context.Context, l *look) error {
	for range 5 {
		r, text, err := s.read(ctx)
		if err != nil {
			return err
		}
		if err := r.check(); err != nil {
			return err
		}
		e, _ := parseEpoch(text)
		next, why := e.follow(time.Now(), &r)
		if last := s.seen.Load(); last != nil && last.epoch == e && r.leapt(&last.report) {
			next, why = newEpoch(time.Now(), &r), "its clock leapt ahead, and keys expired early"
		}
		if next == e {
			l.report, l.epoch = r, e
			s.setFrom(l)
			return nil
		}
		// If several processes replace the epoch at once, only the first one succeeds. After
		// that, all of them read the epoch again.
		swapped, err := s.client.Eval(ctx, swap, []string{s.key}, text, next.String()).Bool()
		if err != nil {
			return err
		}
		if swapped && why != "" {
			s.store.logger.LogAttrs(ctx, slog.LevelWarn, "redisreplay: tokens issued before issued_before are refused, because Redis may have forgotten that they were used",
				slog.String("why", why), slog.Time("issued_before", next.made.Add(s.store.skew)))
		}
	}
	return errRestless
}

const swap = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end return 0`

// setFrom sets l.from. Tokens issued before this time are refused. All tokens that the server may
// have forgotten were issued before the epoch was made. But different clocks may have dated a token
// and the epoch, so setFrom adds the skew.
func (s *server) setFrom(l *look) {
	now := time.Now()
	switch last := s.seen.Load(); {
	case last == nil:
		l.from = earlier(l.epoch.made, now).Add(s.store.skew)
	case last.epoch.id != l.epoch.id:
		l.from = now.Add(s.store.skew) // now rather than epoch.made, because the clock that dated the epoch may be wrong
	default:
		l.from = last.from
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// read returns the server's report and the text of its epoch, both read on one connection.
// If there is no epoch, it writes a mark in the place of the epoch. Trying to write also
// shows whether the server accepts writes: a master that was replaced may refuse them.
func (s *server) read(ctx context.Context) (report, string, error) {
	var err error
	for range 3 { // try again if a cluster is moving the slot to another server
		if err = s.findKey(ctx); err != nil {
			break
		}
		var info, epoch *redis.StringCmd
		var config *redis.MapStringStringCmd
		var mark *redis.StatusCmd
		asked := time.Now()
		s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			info = pipe.Info(ctx)
			config = pipe.ConfigGet(ctx, "*append*")
			mark = redis.NewStatusCmd(ctx, "set", s.key, "none "+rand.Text(), "nx")
			pipe.Process(ctx, mark)
			epoch = pipe.Get(ctx, s.key)
			return nil
		})
		if err = info.Err(); err != nil {
			break
		}
		if err = config.Err(); err != nil && !isReply(err) {
			break // stop at a network error, but not if the server refuses CONFIG
		}
		if err = mark.Err(); err == nil || errors.Is(err, redis.Nil) {
			err = epoch.Err()
		}
		if err == nil {
			r := newReport(info.Val(), config.Val())
			r.asked = asked
			return r, epoch.Val(), nil
		}
		if !isRedirect(err) {
			break
		}
		s.key = ""
		if _, ask := redis.IsAskError(err); ask {
			s.slot++ // the server still owns the slot, but no longer has the key: try the server's next slot
		} else {
			s.slot = 0
		}
	}
	return report{}, "", err
}

// findKey sets s.key, the key in Redis that holds the epoch, unless it is set already. In a
// cluster, findKey chooses a key in a slot of this server.
func (s *server) findKey(ctx context.Context) error {
	if s.key != "" {
		return nil
	}
	info, err := s.client.Info(ctx).Result()
	if err != nil {
		return err
	}
	r := newReport(info, nil)
	if err := r.check(); err != nil {
		return err
	}
	if !r.clustered {
		s.key = s.store.prefix + "epoch"
		return nil
	}
	if s.slot, err = ownSlot(ctx, s.client, s.slot); err != nil {
		return err
	}
	s.key = s.store.prefix + "epoch{" + slotTag(s.slot) + "}"
	return nil
}

// isReply reports whether the error is a server's reply, and not a network error.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
