// Package mutate attacks the example servers like a hostile client. It records honest calls
// over HTTP, of a newer and an older protocol revision. Then it sends the recorded requests
// again with changed methods, states, cursors, answers, arguments, users and ids.
//
// A [Client] speaks the protocol without an SDK, for tests that must control exactly what is
// sent. [Survive] attacks a server and checks its replies.
package mutate
