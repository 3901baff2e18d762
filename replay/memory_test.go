package replay

import (
	"context"
	"encoding/binary"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// spread is how much later each use expires than the use before it.
const spread = time.Millisecond

// fill uses the tokens with the numbers from first up to last-1. If everyOwner is true, each
// token belongs to a user of its own; otherwise the tokens belong to 64 users.
func fill(t *testing.T, s *SingleProcess, first, last int, everyOwner bool, now moment) {
	t.Helper()
	issued := s.start.Add(time.Duration(now.wall) * time.Second)
	for i := first; i < last; i++ {
		u := tripseal.Use{Round: 1, Issued: issued, Until: issued.Add(12*time.Minute + time.Duration(i)*spread)}
		binary.BigEndian.PutUint64(u.Flow[:], uint64(i))
		owner := i
		if !everyOwner {
			owner %= 64
		}
		binary.BigEndian.PutUint64(u.Owner[:], uint64(owner+1))
		if ok, err := s.spend(context.Background(), now, u); !ok || err != nil {
			t.Fatalf("use %d = %v, %v", i, ok, err)
		}
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestAUseTakesFewBytes measures the memory at many numbers of uses. At some of them,
// the tables have just grown.
func TestAUseTakesFewBytes(t *testing.T) {
	for name, most := range map[string]float64{"every use another user's": 250, "few users": 150} {
		everyOwner := most > 200
		t.Run(name, func(t *testing.T) {
			before := heap()
			s, err := NewSingleProcess(Config{Capacity: 1_000_000, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			worst, at, held := 0.0, 0, 0
			for level := 4000; level < 60_000; level = level * 11 / 10 {
				fill(t, s, held, level, everyOwner, moment{})
				held = level
				if each := float64(heap()-before) / float64(held); each > worst {
					worst, at = each, held
				}
			}
			t.Logf("%.1f bytes a use at most, with %d uses", worst, at)
			if worst >= most {
				t.Errorf("%.1f bytes a use with %d uses", worst, at)
			}
			runtime.KeepAlive(s)
		})
	}
}
