package redisreplay

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

const (
	slots = 16384

	errNoSlots = tripseal.PlainError("a Redis of the cluster has no slots")
)

// ownSlot returns the lowest slot that the server owns and that is not below minSlot. So every
// process finds the same slot.
func ownSlot(ctx context.Context, server *redis.Client, minSlot int) (int, error) {
	id, err := server.Do(ctx, "cluster", "myid").Text()
	if err != nil {
		return 0, err
	}
	//lint:ignore SA1019 CLUSTER SHARDS would be newer, but a Redis before 7 does not have it
	ranges, err := server.ClusterSlots(ctx).Result()
	if err != nil {
		return 0, err
	}
	first := slots
	for _, r := range ranges {
		if len(r.Nodes) > 0 && r.Nodes[0].ID == id && r.End >= minSlot {
			first = min(first, max(r.Start, minSlot))
		}
	}
	if first < 0 || first >= slots {
		return 0, errNoSlots
	}
	return first, nil
}

// slotTag returns a hash tag that puts a key into the given slot.
func slotTag(slot int) string {
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); int(crc16(tag))%slots == slot {
			return tag
		}
	}
}

// crc16 returns the CRC-16/XMODEM checksum of text. A Redis cluster computes the slot of a
// key from this checksum.
func crc16(text string) (crc uint16) {
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
