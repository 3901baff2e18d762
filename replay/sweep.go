package replay

const (
	// budget is how many claims one sweep looks at: no request pays for all that
	// expired since the last one.
	budget = 64
	// maxSweeps is how often a claim that finds no room sweeps before it is refused.
	maxSweeps = 32
)

// sweep removes what is over, waits for others that do, and says whether it
// removed anything and whether it left anything. The next one begins where this
// one stopped, so that no shard is left behind.
func (s *SingleProcess) sweep(now moment) (freed, more bool) {
	begin, left := s.turn.Load(), budget
	for i := range uint32(shards) {
		sh := &s.shards[(begin+i)%shards]
		if int64(sh.due.Load()) > now.running {
			continue
		}
		if left == 0 {
			s.turn.Store((begin + i) % shards)
			return freed, true
		}
		looked, removed := s.sweepShard(sh, now, left)
		left -= looked
		freed = freed || removed > 0
		more = more || int64(sh.due.Load()) <= now.running
	}
	return freed, more
}

func (s *SingleProcess) sweepShard(sh *shard, now moment, most int) (looked, removed int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	looked = sh.expire(now, most, func(c claim) {
		s.owners.giveBack(c.owner)
		s.held.Add(-1)
		raise(&s.forgotten, int64(c.until))
		removed++
	})
	return looked, removed
}
