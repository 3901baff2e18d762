package compat

import (
	"time"

	"github.com/tripseal/tripseal"
)

// NewPlaintext is like Plaintext, but the caller says when the process started.
var NewPlaintext = newPlaintext

// SetClocksBack changes a format as if the wall clock and the monotonic clock had been set back by
// these durations since the format was made.
func SetClocksBack(format tripseal.Format, wall, monotonic time.Duration) {
	f := format.(*plaintextFormat)
	f.until, f.left = f.until.Add(wall), f.left+monotonic
}
