package replay

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// FuzzResults lets a few calls use a few tokens, renew, end and give back in any order, and compares the store with
// a model of what [tripseal.ResultStore] promises. Two bytes of the input decide what each step does.
func FuzzResults(f *testing.F) {
	f.Fuzz(func(t *testing.T, steps []byte) {
		const lease, keep = 10 * time.Second, 20 * time.Second
		ctx := context.Background()
		config := Config{Capacity: 100, MaxResult: 8, Bytes: 30, Logger: slog.New(slog.DiscardHandler)}
		s := newSingleProcess(config, time.Now())
		var now moment
		type use struct {
			used, spent, done bool
			call, tag         byte
			ends              time.Duration
			result            []byte
		}
		var model [4]use
		for ; len(steps) >= 2; steps = steps[2:] {
			op, n := steps[0], steps[1]
			m := &model[n%4]
			u := tripseal.Use{Flow: [16]byte{n % 4}, Round: 1, Issued: s.start, Until: s.start.Add(time.Hour), Owner: [16]byte{n % 2}}
			claim := tripseal.Claim{Call: [16]byte{n >> 2 % 4}, Tag: [32]byte{n >> 4 % 2}, Lease: lease, Repeat: n>>5%2 == 1}
			call, tag := claim.Call[0], claim.Tag[0]
			holds := m.used && !m.spent && !m.done && m.call == call && now.exact < m.ends
			switch op % 6 {
			case 0: // time passes
				now.exact += time.Duration(n) * time.Second / 16
				now.wall, now.running = int64(now.exact/time.Second), int64(now.exact/time.Second)
			case 1:
				begun, err := s.begin(ctx, now, u, nil)
				if first := begun.State == tripseal.CallFirst; err != nil || first == m.used {
					t.Fatalf("Spend = %v, %v of %+v", first, err, *m)
				}
				if !m.used {
					*m = use{used: true, spent: true}
				}
			case 2:
				want := tripseal.CallFirst
				switch {
				case !m.used:
				case m.spent || m.tag != tag:
					want = tripseal.CallOther
				case m.done && m.result != nil && now.exact < m.ends:
					want = tripseal.CallDone
				case m.done:
					want = tripseal.CallNotKept
				case now.exact < m.ends && m.call != call:
					want = tripseal.CallRunning
				case now.exact >= m.ends && !claim.Repeat:
					want = tripseal.CallLost
				}
				begun, err := s.begin(ctx, now, u, &claim)
				if err != nil || begun.State != want || want == tripseal.CallDone && !bytes.Equal(begun.Result, m.result) {
					t.Fatalf("Begin = %+v, %v, want state %d of %+v", begun, err, want, *m)
				}
				if want == tripseal.CallFirst && !holds {
					*m = use{used: true, call: call, tag: tag, ends: now.exact + lease}
				}
			case 3:
				if err := s.change(ctx, now, u, claim, nil); holds != (err == nil) {
					t.Fatalf("Renew = %v of %+v", err, *m)
				}
				if holds {
					m.ends = now.exact + lease
				}
			case 4:
				err := s.change(ctx, now, u, claim, &tripseal.End{GiveBack: true})
				if holds != (err == nil) {
					t.Fatalf("giving back = %v of %+v", err, *m)
				}
				if holds {
					*m = use{}
				}
			case 5:
				again := m.used && !m.spent && m.done && m.call == call
				result := bytes.Repeat([]byte{n}, int(n>>4))
				err := s.change(ctx, now, u, claim, &tripseal.End{Result: result, Keep: keep})
				if (holds || again) != (err == nil) {
					t.Fatalf("End = %v of %+v", err, *m)
				}
				if !holds {
					break
				}
				m.done, m.ends, m.result = true, now.exact+keep, nil
				if e := s.uses[token{u.Flow, 1}]; e.call.result != nil { // there was room for it
					m.result = result
				} else if len(result) > 0 && len(result) <= config.MaxResult && s.bytes == 0 {
					t.Fatal("an empty store does not keep a result")
				}
			}
			held := 0
			for _, e := range s.uses {
				if e.call != nil {
					held += len(e.call.result)
				}
			}
			if held != s.bytes || held > config.Bytes {
				t.Fatalf("%d bytes are held and %d counted", held, s.bytes)
			}
		}
	})
}
