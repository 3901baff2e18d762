package redisreplay_test

import (
	"context"
	"encoding/base64"
	"net"
	"testing"
)

// TestATokenIsSpentOnceWhileItsSlotMoves uses tokens before, during and after the move
// of their slot from one master to another.
func TestATokenIsSpentOnceWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, nodes := startCluster(t)
	store := newStore(t, restricted(t, client, nodes))
	spend := func(flow [16]byte, want bool) {
		t.Helper()
		use := newUse()
		use.Flow = flow
		if first, err := store.Spend(ctx, use); err != nil || first != want {
			t.Fatalf("Spend = %v, %v, want %v", first, err, want)
		}
	}
	// Find two tokens whose keys are in the same slot of the first node.
	flows := map[int64][16]byte{}
	var slot int64
	var earlier, later [16]byte
	for {
		flow := newUse().Flow
		slot = client.ClusterKeySlot(ctx, key(flow)).Val()
		if other, ok := flows[slot]; ok && slot < 5000 {
			earlier, later = other, flow
			break
		}
		flows[slot] = flow
	}
	spend(earlier, true)

	from, to := nodes[0].client(t), nodes[1].client(t)
	fromID, toID := from.Do(ctx, "cluster", "myid").Val(), to.Do(ctx, "cluster", "myid").Val()
	nodes[1].admin(t, "cluster", "setslot", slot, "importing", fromID)
	nodes[0].admin(t, "cluster", "setslot", slot, "migrating", toID)
	spend(earlier, false)
	spend(later, true) // the new node of the slot records this use
	spend(later, false)
	if from.Exists(ctx, key(later)).Val() != 0 {
		t.Error("the use did not go to the new node: the test shows nothing")
	}

	_, port, _ := net.SplitHostPort(nodes[1].addr)
	if err := from.Do(ctx, "migrate", "127.0.0.1", port, key(earlier), 0, 5000).Err(); err != nil {
		t.Fatal(err)
	}
	spend(earlier, false)
	for _, s := range []*server{nodes[1], nodes[0], nodes[2]} {
		s.admin(t, "cluster", "setslot", slot, "node", toID)
	}
	spend(earlier, false)
	spend(later, false)
}

func key(flow [16]byte) string {
	return "tripseal:used:" + base64.RawURLEncoding.EncodeToString(flow[:]) + ".1"
}
