package keyfile

import "time"

// WaitForLock is how long Update waits.
func WaitForLock(d time.Duration) { lockTimeout = d }
