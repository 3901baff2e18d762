// Package gosdk protects servers of the official Go SDK,
// github.com/modelcontextprotocol/go-sdk, with one line:
//
//	gosdk.Protect(server, boundary, nil)
//
// From then on, every requestState in a result of tools/call, prompts/get or
// resources/read is sealed. Every requestState that comes back is checked before any
// handler runs. Handlers still read and write plaintext. Answers reach a handler only if
// the sealed state says that their questions were asked. A request or result of a method
// other than these three is refused if it holds a state, questions or answers. But the
// SDK drops the state and the answers of a request if the Go type of the params has no
// fields for them, as in the other methods of the SDK. It drops them before any middleware
// runs, so such a request is served. If a handler panics, its call fails and the process
// goes on.
//
// [SetState] writes a Go value into a result as its state, and [State] reads it in the
// next round. [Sealed] tells a handler whether its request came through a boundary.
// [Handler] serves clients of all protocol revisions at one URL. A client whose protocol
// revision has no multi round-trip requests gets the questions during the call, in as
// many rounds as needed. (For such a client, the SDK requires that a resource's result
// with questions has an empty slice in Contents. If such a client has not declared
// elicitation, the SDK refuses the question with its own error.)
package gosdk
