package proxycmd

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// heldWriter is a writer that a test can make block or fail.
type heldWriter struct {
	release chan struct{}
	mu      sync.Mutex
	fails   bool
	text    bytes.Buffer
}

func (w *heldWriter) Write(p []byte) (int, error) {
	if w.release != nil {
		<-w.release
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails {
		return 0, errors.New("no space left on device")
	}
	return w.text.Write(p)
}

func (w *heldWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	t.Parallel() // it waits for logTimeout
	to := &heldWriter{release: make(chan struct{})}
	logger, flush := (&proxyLog{format: "text"}).open(to)
	for range 2 * logRoom {
		logger.Info("record") // must return at once; otherwise the test hangs
	}
	flush() // gives up after logTimeout
	close(to.release)
	eventually(t, "all that was kept is written, and how many were not", func() bool {
		text := to.String()
		return strings.Count(text, "msg=record") >= logRoom && strings.Contains(text, "could not be written")
	})
}

func TestAFullDiskIsSaidWhenThereIsSpaceAgain(t *testing.T) {
	to := &heldWriter{fails: true}
	w := &logWriter{to: to, lostRecord: "lost %d"}
	for range 3 {
		w.writeOne([]byte("record\n"))
	}
	to.fails = false
	w.writeOne([]byte("last\n"))
	if text := to.String(); text != "last\nlost 3\n" {
		t.Errorf("%q", text)
	}
}

func TestTheEndOfTheLogIsWritten(t *testing.T) {
	for range 100 {
		to := &heldWriter{}
		logger, flush := (&proxyLog{format: "json"}).open(to)
		logger.Info("first")
		logger.Info("last")
		flush()
		if text := to.String(); !strings.Contains(text, `"msg":"last"`) {
			t.Fatalf("%q", text)
		}
	}
}

// eventually waits until a condition holds, for a minute at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("this did not happen within a minute: %s", what)
		}
	}
}
