package keyfile

import (
	"io"
	"time"
)

// WaitForLock sets how long Update waits for the lock.
func WaitForLock(d time.Duration) { lockTimeout = d }

// WhileReading makes ReadText call f after it has read the bytes of a file, and before it checks
// whether the file changed meanwhile.
func WhileReading(f func()) (restore func()) {
	readAll = func(r io.Reader) ([]byte, error) {
		text, err := io.ReadAll(r)
		f()
		return text, err
	}
	return func() { readAll = io.ReadAll }
}

// EndsOfSealing returns, for each key except the last one, the time at which it stops sealing.
func EndsOfSealing(d *Document) (ends []time.Time) {
	for _, end := range d.endsOfSealing(d.Schedule()) {
		ends = append(ends, end.at)
	}
	return ends
}
