// Package gosdktest helps to test handlers of servers that package gosdk protects.
package gosdktest

import (
	"context"
	"testing"

	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// Context returns a context for a handler that a test calls by itself, marked as
// that of a call which came through a boundary: [gosdk.Sealed] is true in it.
func Context(t testing.TB) context.Context {
	return &passage.Call{Context: t.Context(), By: t}
}
