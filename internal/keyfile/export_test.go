package keyfile

import (
	"io"
	"time"
)

// WaitForLock is how long Update waits.
func WaitForLock(d time.Duration) { lockTimeout = d }

// WhileReading has f called when the bytes of a file are read and it was not yet
// looked whether they changed meanwhile.
func WhileReading(f func()) (restore func()) {
	readAll = func(r io.Reader) ([]byte, error) {
		text, err := io.ReadAll(r)
		f()
		return text, err
	}
	return func() { readAll = io.ReadAll }
}

// EndsOfSealing returns when each key but the last stopped sealing.
func EndsOfSealing(d *Document) (ends []time.Time) {
	for _, end := range d.endsOfSealing(d.Schedule()) {
		ends = append(ends, end.at)
	}
	return ends
}
