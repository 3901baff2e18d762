// Package compat seals and opens the tokens of other MCP implementations, called peers: the
// Python SDK, the TypeScript SDK, the Ruby SDK and mcp.d. It is for a fleet that moves from
// a peer to Go, or runs both side by side for a while. No call that waits for a user's
// answer is lost in the move.
//
// Each constructor returns a [tripseal.Format]. Set it as Config.Format to seal tokens that the peer
// opens. Or list it in Config.AlsoOpen: then new tokens are native, and the boundary also opens
// tokens that the peer sealed. docs/migration.md shows when to use which of these two settings.
// None of these formats carries all claims of a native token. A boundary refuses a format that
// lacks a claim, unless the boundary's Config waives that claim by name.
//
// A service that already seals its states in its own way can move to native tokens with a
// [tripseal.Format] of its own: see the example OwnFormat. [Plaintext] is for a
// fleet whose states are not sealed at all.
//
// This package is strict even where a peer is not. It accepts each token in exactly one
// spelling, demands secrets of at least 32 bytes, and refuses a claim or an argument that
// appears twice. States are in UTF-8. If a peer wrote a lone surrogate (half of a UTF-16
// pair), that surrogate arrives as three bytes, encoded by the same rule as other characters.
package compat
