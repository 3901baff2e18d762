package redisreplay

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

const someID = "0123456789abcdef0123456789abcdef01234567"

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

// FuzzEpoch parses texts that may be in a server in place of an epoch. A text that
// parseEpoch accepts must be exactly the text of an epoch.
func FuzzEpoch(f *testing.F) {
	f.Add("tripseal-epoch-1 abc 1790000000000 " + someID + " " + someID + " 0 1")
	f.Add("none abc")
	f.Fuzz(func(t *testing.T, text string) {
		e, ok := parseEpoch(text)
		if !ok {
			if e != (epoch{}) {
				t.Errorf("%q is no epoch, and yet %q", text, &e)
			}
			return
		}
		if e.String() != text {
			t.Errorf("%q is also %q", text, e.String())
		}
		if e.id == "" || !isIdentity(e.run) || !isIdentity(e.history) {
			t.Errorf("%q has no identity", text)
		}
	})
}

// FuzzReport makes reports from what a server may say about itself. If a report is
// accepted, it must have the lines that identify the server, and an epoch that is made from the
// report must match the server.
func FuzzReport(f *testing.F) {
	whole := "# Server\r\nrun_id:" + someID + "\r\nrole:master\r\nmaster_replid:" + someID + "\r\nmaxmemory_policy:noeviction\r\nevicted_keys:3\r\n" +
		"connected_slaves:0\r\nrepl_backlog_active:0\r\naof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n"
	f.Add(whole, "always", "no")
	f.Add(strings.Replace(whole, "master\r", "slave\r", 1), "everysec", "yes")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, info, fsync, lazy string) {
		r := newReport(info, map[string]string{"appendfsync": fsync, "no-appendfsync-on-rewrite": lazy})
		if r.keepsTokens(false) && (fsync != "always" || lazy != "no") {
			t.Error("a server keeps uses that does not say so")
		}
		if r.check() != nil {
			return
		}
		for _, line := range []string{"run_id:", "role:master", "master_replid:", "maxmemory_policy:noeviction"} {
			if !strings.Contains(info, line) {
				t.Errorf("passes without %s", line)
			}
		}
		e := newEpoch(time.Now(), &r)
		parsed, ok := parseEpoch(e.String())
		if next, why := parsed.follow(time.Now(), &r); !ok || next != parsed && next.keeps == parsed.keeps || why != "" {
			t.Errorf("its own epoch %q does not suit it: %q, %q", &e, &next, why)
		}
	})
}
