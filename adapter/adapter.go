// Package adapter is for authors of adapters. It holds the code that adapters of all MCP
// SDKs need. If you write a server, use an adapter, such as gosdk or mcpgo.
//
// An adapter moves fields between an SDK and a [tripseal.Boundary], and the boundary
// decides what is accepted. The rest of the work is the same for every SDK, and is in
// this package: keeping a copy of the arguments that no handler can change ([Arguments]),
// asking only what the client can answer ([Capabilities]), finding incomplete answers
// ([HasNull]), finding states that are for another kind of handler ([PinsWording]),
// sealing the cursors of lists ([ListCursors]), and finding mistakes of the server's
// author ([Unlisted], [Table]).
package adapter

// StartOver is the text of a tool result that tells a model what to do after a token was
// rejected. An adapter can send this result instead of the protocol's error. Let authors
// choose between StartOver, their own text and the error.
const StartOver = "The confirmation is no longer valid. Nothing was done. Call the tool again to start over."

// HasNull reports whether a JSON value is null or holds a null, at any depth. A form
// field that the user left empty is absent, not null, so a handler does not expect a
// null. Drop an answer for which HasNull returns true: it is incomplete.
func HasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		for _, item := range v {
			if HasNull(item) {
				return true
			}
		}
	case map[string]any:
		for _, member := range v {
			if HasNull(member) {
				return true
			}
		}
	}
	return false
}
