// Package tripseal protects the requestState of MCP servers (protocol revision 2026-07-28, multi round-trip requests).
//
// Most servers need another package: gosdk protects a server of the official Go SDK with one line, and gosdk/elicit
// lets the server's handlers ask the user a question as if they called a function. Both are built on this package. Use
// this package to write an adapter for another SDK.
//
// A handler that needs something from the user writes down what it must remember: its state. The client keeps that
// text and sends it back with the answers. So whoever holds the text can read it, change it, or send it as another
// user, for another request, or years later. With a [Boundary], the client gets a sealed token instead:
// [Boundary.Seal] turns the state into a token, and [Boundary.Open] turns the token back into the state. A token opens
// only if it is unchanged and not expired, and only for the user, request and service that it was sealed for.
// Otherwise the client gets an error, which is always the same, and the operator gets a [Reason].
//
//	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "deploy.example.com"})
//	…
//	round, err := boundary.Open(ctx, request, token) // "" on the first round
//	…
//	token, err := boundary.Seal(ctx, &round, &state, tripseal.Question{Key: "confirm", Kind: tripseal.KindForm})
//
// This package imports only the standard library and keeps nothing between two rounds.
//
// The keys come from a [KeySource]: a [Ring] of keys that every replica shares, or [Ephemeral] for a single process.
// The parts that can be replaced are small interfaces, each with a suite in the sealtest package: [Codec] for your own
// cryptography, [Format] for tokens that are not native, [ReplayStore] for tokens that work only once.
package tripseal
