//go:build !race

package wire_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Under the race detector everything takes more memory, so this test is left out there.

// What a client sends must not take many times its length in memory, however it is nested.
func TestHostileMessagesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const length, atOnce = 1 << 20, 16
	fill := func(open, part, end string) string {
		return open + strings.Repeat(part, (length-len(open)-len(end))/len(part)) + end
	}
	call := func(members string) string { return carriers[0].call(members) }
	for name, message := range map[string]string{
		"answers": call(`,"inputResponses":{"q":{"action":"accept","content":` + fill("[1", `,{"a":[]}`, "]") + `}}`),
		"capabilities": call(`,"_meta":{"io.modelcontextprotocol/clientCapabilities":{"x":` + fill(`{"a":0`, `,"b":[]`,
			"}") + `}}`),
		"params": call(fill("", `,"x":0`, "")),
	} {
		f := newFront(t, writes(200, jsonType, askingMessage))
		runtime.GC()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		done := make(chan bool)
		for range atOnce {
			all.Go(func() {
				if a := f.do("POST", message); a.status != 200 {
					t.Errorf("%s: %+v", name, a)
				}
			})
		}
		go func() {
			all.Wait()
			close(done)
		}()
		peak := uint64(0)
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(20 * time.Millisecond):
			}
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
		}
		// Decoded into Go's values, a message would take fifty times its length and more.
		if all := now.TotalAlloc - before.TotalAlloc; peak > 8*atOnce*length || all > 16*atOnce*length {
			t.Errorf("%s: %d MiB at once, %d MiB in all", name, peak>>20, all>>20)
		}
	}
}
