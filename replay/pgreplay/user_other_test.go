//go:build !unix

package pgreplay_test

import (
	"os/exec"
	"testing"
)

func asOrdinaryUser(*testing.T, *exec.Cmd) {}
func giveAway(*testing.T, string)          {}
