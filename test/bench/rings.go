package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// ringContenders returns contenders that open a token with rings of various sizes. The token
// was sealed with the last key of the ring.
func ringContenders() (all []contender) {
	ctx := context.Background()
	for _, count := range []int{1, 10, 1000} {
		keys := someKeys(count)
		b := boundary(ring(keys...))
		token := sealFirst(boundary(ring(keys[count-1])), strings.Repeat("x", 256))
		all = append(all, contender{fmt.Sprintf("keys in the ring: %d", count), len(token), func() {
			_, err := b.Open(ctx, request, token)
			check(err)
		}})
	}
	return all
}

func someKeys(count int) []tripseal.Key {
	keys := make([]tripseal.Key, count)
	for i := range keys {
		keys[i] = tripseal.GenerateKey()
	}
	return keys
}

func ring(keys ...tripseal.Key) *tripseal.Ring {
	r, err := tripseal.NewRing(keys...)
	check(err)
	return r
}

// file writes the keys to a file. It returns a key source that reads this file, and reads it again
// after every change. The first key seals.
func file(all []tripseal.Key) tripseal.KeySource {
	source, err := keys.OpenFile(writeKeys(all), &keys.Options{Logger: slog.New(slog.DiscardHandler)})
	check(err)
	return source
}

func writeKeys(all []tripseal.Key) (path string) {
	var text strings.Builder
	text.WriteString("tripseal-keys 1\n")
	for i, key := range all {
		from := time.Now().Add(-time.Duration(i) * time.Hour).UTC().Format(time.RFC3339)
		fmt.Fprintf(&text, "key %s made=%s seals-from=%s opens-until=never secret=%s\n", key.ID(), from, from, key.Reveal())
	}
	text.WriteString("end\n")
	f, err := os.CreateTemp("", "tripseal-bench-keys")
	check(err)
	atEnd = append(atEnd, func() { os.Remove(f.Name()) })
	_, err = f.WriteString(text.String())
	check(err)
	check(f.Close())
	return f.Name()
}
