// Package gosdk protects servers of the official Go SDK,
// github.com/modelcontextprotocol/go-sdk, with one line:
//
//	gosdk.Protect(server, boundary, nil)
//
// From then on every requestState that leaves on tools/call, prompts/get and
// resources/read is sealed, and every one that comes back is checked before any
// handler runs. Handlers go on reading and writing plaintext. Answers reach a
// handler only if the sealed state says that they were asked for.
//
// [SetState] and [State] put a Go value into a result and get it back.
// [Handler] serves clients of all protocol revisions at one URL. Clients from
// before multi round-trip requests are asked in the middle of the call, for as
// many rounds as it takes. (For such a client the SDK wants a resource that asks
// to set Contents to an empty slice, and refuses an elicitation that the client
// has not declared in words of its own.)
package gosdk
