package main

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
)

// heldWriter blocks until it is released, and can fail.
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

func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	to := &heldWriter{release: make(chan struct{})}
	l := &logWriter{to: to, lostRecord: "lost %d"}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { l.Write([]byte("record\n")) })
	}
	group.Wait() // all have given up
	if _, err := l.Write([]byte("record\n")); err == nil {
		t.Error("a record was written, although nobody reads")
	}
	close(to.release)
	eventually(t, "a record is written", func() bool {
		_, err := l.Write([]byte("last\n"))
		return err == nil
	})
	to.mu.Lock()
	defer to.mu.Unlock()
	if text := to.text.String(); !strings.Contains(text, "lost ") || !strings.Contains(text, "last\n") {
		t.Error(text)
	}
}

func TestAFullDiskIsSaidWhenThereIsSpaceAgain(t *testing.T) {
	to := &heldWriter{fails: true}
	l := &logWriter{to: to, lostRecord: "lost %d"}
	for range 3 {
		l.Write([]byte("record\n"))
	}
	to.mu.Lock()
	to.fails = false
	to.mu.Unlock()
	l.Write([]byte("last\n"))
	if text := to.text.String(); text != "last\nlost 3\n" {
		t.Errorf("%q", text)
	}
}
