// Package compat seals and opens the tokens of other MCP implementations: the Python
// SDK, the TypeScript SDK, the Ruby SDK and mcp.d. It is for a fleet that moves from one of
// these peers to Go, or runs both side by side for a while, without dropping a flow.
//
// Each constructor returns a [mcpseal.Format]. Set it as Config.Format to seal tokens that
// the peer opens, or list it in Config.AlsoOpen to open tokens that the peer sealed while
// new tokens are native. None of these formats carries all claims of a native token; a
// boundary refuses a format that lacks a claim unless the claim is waived by name.
// docs/migration.md describes both steps.
//
// A service that already seals its states in its own way can move to native tokens with a
// [mcpseal.Format] of its own: see the example OwnFormat. [Plaintext] is for a
// fleet whose states are not sealed at all.
//
// This package is strict even where a peer is not: exactly one text opens for each
// token, secrets have at least 32 bytes, and a claim or an argument that appears twice
// is refused. States are in UTF-8; a lone surrogate that a peer wrote arrives as the
// three bytes that UTF-8 would give it.
package compat
