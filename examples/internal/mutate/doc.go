// Package mutate attacks the example servers the way a hostile client would: it
// records honest calls of both revisions over HTTP, and sends them again with
// their methods, states, cursors, answers, arguments, users and ids changed.
//
// A [Client] speaks the protocol by hand, for tests that need to say exactly what
// is sent. [Survive] attacks a server and judges what comes back.
package mutate
