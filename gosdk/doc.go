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
// request or result of any other method is refused if it holds one of them. There is one exception:
// if the Go type of a request's params has no fields for a state and answers, the SDK drops both
// before any middleware runs, and the request is served. The params of the SDK's other methods have
// no such fields. Those of your own methods may have them.
//
// [SetState] writes a Go value into a result as its state, and [State] reads it in the next round.
// [Sealed] tells a handler whether its request came through a boundary. [Handler] serves clients of
// all protocol revisions at one URL. A client whose protocol revision has no multi round-trip
// requests gets the questions during the call, in as many rounds as needed. (If a resource asks
// such a client, it must set Contents in the result to an empty slice, not nil: the SDK requires
// it. If such a client has not declared elicitation, the SDK refuses the question with its own
// error.)
package gosdk
