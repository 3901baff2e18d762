package compat

import (
	"time"

	"github.com/mcpseal/mcpseal"
)

// NewPlaintext is Plaintext for a process that started at another time.
var NewPlaintext = newPlaintext

// SetClocksBack makes it look as if the wall clock, or the monotonic one, had been
// set back by so much since the format was made.
func SetClocksBack(format mcpseal.Format, wall, monotonic time.Duration) {
	f := format.(*plaintextFormat)
	f.until, f.left = f.until.Add(wall), f.left+monotonic
}
