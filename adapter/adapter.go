// Package adapter has what adapters of MCP SDKs have in common, for authors of adapters.
// If you write a server, use an adapter, such as gosdk or mcpgo.
//
// An adapter moves fields between an SDK and a [mcpseal.Boundary], and the boundary
// decides. The rest of the work is the same for every SDK, and is here: a copy of the
// arguments that no handler can change ([Arguments]), the questions that a client can
// answer ([Capabilities]), answers without gaps ([HasNull]), the cursors of lists
// ([ListCursors]), and mistakes of the server's author ([Unlisted], [Table]).
package adapter

// StartOver is the text of a tool result that tells a model what to do after a token was
// rejected. Adapters offer it in place of the protocol's error.
const StartOver = "The confirmation is no longer valid. Nothing was done. Call the tool again to start over."

// HasNull reports whether a JSON value is null or holds a null, at any depth. A form field
// that the user left empty is absent, not null, so a handler does not expect one.
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
