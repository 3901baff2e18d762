package sealtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
)

// TestCodec tests a codec against the contract of [tripseal.Codec]. Call it in a test of
// your own codec.
func TestCodec(t *testing.T, codec tripseal.Codec) {
	ctx := context.Background()
	payload := []byte("S\x01 a payload that is long enough \x00\xff to be seen")

	t.Run("RoundTrip", func(t *testing.T) {
		for _, size := range []int{0, 1, 2, 3, 15, 16, 17, 255, 256, 4096, 40_000} {
			want := bytes.Repeat([]byte{byte(size), 0, 0xff}, size)[:size]
			text := mustSeal(t, codec, want)
			if again := mustOpen(t, codec, text); !bytes.Equal(again, want) {
				t.Errorf("a payload of %d bytes came back as %d other bytes", size, len(again))
			}
		}
	})
	t.Run("AppendsToDst", func(t *testing.T) {
		text, err := codec.Seal(ctx, []byte("kept"), payload)
		if err != nil {
			t.Fatal(err)
		}
		rest, kept := bytes.CutPrefix(text, []byte("kept"))
		if !kept {
			t.Fatal("Seal does not append to dst")
		}
		if opened, err := codec.Open(ctx, []byte("kept"), string(rest)); err != nil || !bytes.Equal(opened, append([]byte("kept"), payload...)) {
			t.Fatalf("Open does not append to dst: %q, %v", opened, err)
		}
		text = rest
		opened, err := codec.Open(ctx, make([]byte, 0, 8), string(text))
		if err != nil || !bytes.Equal(opened, payload) {
			t.Errorf("with a small dst: %q, %v", opened, err)
		}
		dirty := bytes.Repeat([]byte{0xaa}, 10_000)[:0]
		if opened, err = codec.Open(ctx, dirty, string(text)); err != nil || !bytes.Equal(opened, payload) {
			t.Errorf("with a large dst that was used before: %q, %v", opened, err)
		}
	})
	t.Run("LeavesThePayloadAlone", func(t *testing.T) {
		given := bytes.Clone(payload)
		mustSeal(t, codec, given)
		if !bytes.Equal(given, payload) {
			t.Error("Seal changed the payload")
		}
	})
	t.Run("TextIsPlain", func(t *testing.T) {
		text := mustSeal(t, codec, payload)
		const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
		if rest := strings.Trim(text, allowed); rest != "" {
			t.Errorf("the text has characters that a token may not have: %q", rest)
		}
		for _, part := range strings.Split(text, ".") {
			decoded, _ := base64.RawURLEncoding.DecodeString(part)
			unhexed, _ := hex.DecodeString(part)
			if bytes.Contains(append(append(decoded, unhexed...), text...), []byte("payload")) {
				t.Error("the payload can be read from the text")
			}
		}
	})
	t.Run("OnlyOneTextOpens", func(t *testing.T) {
		text := mustSeal(t, codec, payload)
		for _, other := range mutations(text) {
			mustRefuse(t, codec, other)
		}
		for _, junk := range []string{"", ".", "A", "AAAA", strings.Repeat("A", 100), strings.Repeat("A", 70_000), "\xff\xfe"} {
			mustRefuse(t, codec, junk)
		}
	})
	t.Run("Concurrent", func(t *testing.T) {
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				mine := bytes.Repeat([]byte{byte(g)}, 100+g)
				for range 50 {
					text, err := codec.Seal(ctx, nil, mine)
					if err != nil {
						t.Error(err)
						return
					}
					if opened, err := codec.Open(ctx, nil, string(text)); err != nil || !bytes.Equal(opened, mine) {
						t.Errorf("opened %d bytes, %v", len(opened), err)
						return
					}
				}
			})
		}
		group.Wait()
	})
}

func mustSeal(t *testing.T, codec tripseal.Codec, payload []byte) string {
	t.Helper()
	text, err := codec.Seal(context.Background(), nil, payload)
	if err != nil {
		t.Fatalf("Seal: %v", err)
	}
	return string(text)
}

func mustOpen(t *testing.T, codec tripseal.Codec, text string) []byte {
	t.Helper()
	payload, err := codec.Open(context.Background(), nil, text)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return payload
}

// mustRefuse fails the test unless the codec refuses this text, which is not genuine.
func mustRefuse(t *testing.T, codec tripseal.Codec, text string) {
	t.Helper()
	payload, err := codec.Open(context.Background(), nil, text)
	if err == nil {
		t.Fatalf("a text that was never sealed opens: %.80q", text)
	}
	if len(payload) != 0 {
		t.Fatalf("Open returned a payload together with an error for %.80q", text)
	}
	var reason tripseal.Reason
	if !errors.As(err, &reason) ||
		reason != tripseal.ReasonMalformed && reason != tripseal.ReasonUnknownKey && reason != tripseal.ReasonForged {
		t.Fatalf("the error does not say that the text is not genuine: %v", err)
	}
}
