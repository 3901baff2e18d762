//go:build !unix

package redisreplay_test

import (
	"errors"
	"os"
)

// These systems have no signals that stop and continue a process. Redis does not run on them either.
func stop(*os.Process) error { return errors.ErrUnsupported }
func goOn(*os.Process) error { return errors.ErrUnsupported }
