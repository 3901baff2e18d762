// Package gosdktest helps to test handlers of servers that package gosdk protects.
package gosdktest

import (
	"context"
	"testing"

	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// Context returns a context for a test that calls a handler directly. It is marked as
// if the call came through a boundary: [gosdk.Sealed] returns true for it.
func Context(t testing.TB) context.Context {
	return &passage.Call{Context: t.Context(), By: t}
}
