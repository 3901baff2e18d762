package redisreplay

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestEverySlotHasATag(t *testing.T) {
	if crc := crc16("123456789"); crc != 0x31c3 { // this value is in the specification of Redis Cluster
		t.Fatalf("crc16 = %#x", crc)
	}
	for range 200 {
		slot := rand.IntN(slots)
		if tag := slotTag(slot); int(crc16(tag))%slots != slot {
			t.Errorf("slot %d has the tag %q", slot, tag)
		}
	}
	seen := make([]bool, slots) // every slot must have a tag, or slotTag would never return
	left := slots
	for i := 0; left > 0 && i < 1<<20; i++ {
		if slot := int(crc16(strconv.Itoa(i))) % slots; !seen[slot] {
			seen[slot] = true
			left--
		}
	}
	if left > 0 {
		t.Errorf("%d slots have no tag", left)
	}
}

// TestALookCoversASecond checks that a look is valid for a second, by the monotonic clock
// and by the wall clock.
func TestALookCoversASecond(t *testing.T) {
	began := time.Now()
	l := &look{began: began, dials: 3}
	asleep := began.Add(time.Minute).Round(0) // has only the wall clock, not the monotonic clock
	for name, c := range map[string]struct {
		look  *look
		dials int64
		at    time.Time
		want  bool
	}{
		"at once":                         {l, 3, began, true},
		"a second later":                  {l, 3, began.Add(time.Second), true},
		"later":                           {l, 3, began.Add(time.Second + 1), false},
		"a connection was made meanwhile": {l, 4, began, false},
		"fewer connections":               {l, 2, began, true},
		"begun after the answer":          {l, 3, began.Add(-time.Minute), true},
		"the machine slept":               {l, 3, asleep, false},
		"nobody looked":                   {nil, 0, began, false},
	} {
		if got := c.look.covers(c.dials, c.at); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWhenARestartLosesNothing changes one thing at a time in the report of a server that
// keeps every use. After each change, keepsTokens must report false, with one exception: a
// rewrite of the append-only file does no harm if the file was complete before.
func TestWhenARestartLosesNothing(t *testing.T) {
	keeping := report{aof: true, fsync: "always", alone: true}
	if !keeping.keepsTokens(false) {
		t.Fatal("a server that keeps every use does not")
	}
	for name, change := range map[string]func(*report){
		"no append-only file":        func(r *report) { r.aof = false },
		"everysec":                   func(r *report) { r.fsync = "everysec" },
		"it does not tell":           func(r *report) { r.fsync = "" },
		"not while the file is new":  func(r *report) { r.lazy = true },
		"it has replicas":            func(r *report) { r.alone = false },
		"the first file is not done": func(r *report) { r.rewriting = true },
	} {
		r := keeping
		change(&r)
		if r.keepsTokens(false) {
			t.Errorf("%s: a restart keeps flows", name)
		}
		if r.keepsTokens(true) != r.rewriting {
			t.Errorf("%s: kept before, a restart keeps flows: %v", name, r.keepsTokens(true))
		}
	}
}
