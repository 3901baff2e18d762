//go:build !unix

package redisreplay_test

import (
	"errors"
	"os"
)

// Redis does not run here either.
func stop(*os.Process) error { return errors.ErrUnsupported }
func goOn(*os.Process) error { return errors.ErrUnsupported }
