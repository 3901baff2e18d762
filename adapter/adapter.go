// Package adapter is for authors of adapters: it has what all MCP SDKs need beside a boundary. If you write a server,
// use an adapter, such as gosdk or mcpgo.
//
// An adapter moves fields between an SDK and a [tripseal.Boundary], and the boundary decides what is accepted. This
// package asks only what the client can answer ([Capabilities]), and seals the cursors of lists ([ListCursors]).
package adapter

// StartOver is the text of a tool result that tells a model what to do after a token was rejected. An adapter can send
// this result instead of the protocol's error. Let authors choose between StartOver, their own text and the error.
const StartOver = "The confirmation is no longer valid. Nothing was done. Call the tool again to start over."
