// Package gosdk protects servers of the official Go SDK, github.com/modelcontextprotocol/go-sdk, with one line:
//
//	server := gosdk.Protect(sdkServer, boundary, nil)
//	http.Handle("/mcp", server.Handler(nil))
//
// From then on, every requestState in a result of tools/call, prompts/get or resources/read is sealed, and every one
// that comes back is checked before a handler runs. Handlers still read and write plaintext. Answers reach a handler
// only if the sealed state says that their questions were asked. If a handler panics, its call fails and the process
// goes on. Nothing is sealed for methods of your own: let them carry no state.
//
// [SetState] writes a Go value into a result as its state, and [State] reads it in the next round. [AskingTool] and
// [WithAsker] let a handler ask in the middle of its code, with package elicit. [Server.Handler] serves clients of all
// protocol revisions at one URL. A client whose revision has no multi round-trip requests gets the questions during the
// call, in as many rounds as needed. If a resource asks such a client, it must set Contents in the result to an empty
// slice, not nil: the SDK requires it.
package gosdk
