// Package gosdktest is for tests of servers that package gosdk protects, and of their handlers.
//
//	alice := gosdktest.Connect(t, server, nil)
//	asked := alice.CallTool("release", map[string]any{"version": "1.2"})
//	done := asked.Attack(gosdktest.Accept("confirm", map[string]any{"ok": true}))
//
// [Connect] connects a client to your server in memory. The server keeps its gosdk.Options in tests, because each call
// carries the access token or the headers of its user, as over HTTP. A call returns a [Round]. [Round.Answer] sends the
// next round, either genuine or changed as an attacker would change it. [Round.Attack] tries the usual attacks. Nothing
// here waits for real time, so you can test expiry in a bubble of testing/synctest.
//
// [Context] is for a test that calls a handler directly. No client learns why a token was rejected. To check the reason
// in a test, use sealtest.Events.
package gosdktest

import (
	"context"
	"testing"

	"github.com/tripseal/tripseal/gosdk/internal/through"
)

// Context returns a context for a test that calls a handler directly. It is marked as if the call came through a
// boundary: [gosdk.Sealed] returns true for it.
func Context(t testing.TB) context.Context {
	return &through.Call{Context: t.Context()}
}
