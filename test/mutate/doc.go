// Package mutate attacks the example servers like a hostile client. It records honest calls in a
// newer and in an older protocol revision, over HTTP. Then it sends the recorded requests again
// with changed methods, states, cursors, answers, arguments, users and ids.
//
// A [Client] speaks the protocol without an SDK, for tests that must control exactly what is
// sent. [Survive] attacks a server and checks its replies.
package mutate
