// Package gosdk protects servers of the official Go SDK,
// github.com/modelcontextprotocol/go-sdk, with one line:
//
//	gosdk.Protect(server, boundary, nil)
//
// From then on every requestState that leaves on tools/call, prompts/get and
// resources/read is sealed, and every one that comes back is checked before any
// handler runs. Handlers go on reading and writing plaintext. Answers reach a
// handler only if the sealed state says that they were asked for. No other method
// may carry a state, questions or answers. If a handler panics, its call fails and
// the process goes on.
//
// [SetState] and [State] put a Go value into a result and get it back. [Sealed]
// tells a handler whether its request came through a boundary. [Handler] serves
// clients of all protocol revisions at one URL. Clients from before multi
// round-trip requests are asked in the middle of the call, for as many rounds as it
// takes. (For such a client the SDK requires that a resource which asks sets Contents
// to an empty slice. The SDK refuses the question with its own error when the client
// has not declared elicitation.)
package gosdk
