// Package gosdk protects servers of the official Go SDK,
// github.com/modelcontextprotocol/go-sdk, with one line:
//
//	gosdk.Protect(server, boundary, nil)
//
// From then on, every requestState in a result of tools/call, prompts/get or resources/read is
// sealed. Every requestState that comes back is checked before any handler runs. Handlers still
// read and write plaintext. Answers reach a handler only if the sealed state says that their
// questions were asked. If a handler panics, its call fails and the process goes on.
//
// Only tools/call, prompts/get and resources/read may carry a state, questions and answers. A
// request or result of any other method is refused if it holds one of them. But in the SDK's other
// methods, the params have no fields for a state and answers. The SDK drops these from the request
// before any middleware runs, and the request is served. The same happens in a method of your own
// if the Go type of its params has no such fields.
//
// [SetState] writes a Go value into a result as its state, and [State] reads it in the
// next round. [Sealed] tells a handler whether its request came through a boundary.
// [Handler] serves clients of all protocol revisions at one URL. A client whose protocol
// revision has no multi round-trip requests gets the questions during the call, in as
// many rounds as needed. (For such a client, the SDK requires that a resource's result
// with questions has an empty slice in Contents. If such a client has not declared
// elicitation, the SDK refuses the question with its own error.)
package gosdk
