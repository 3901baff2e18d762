// Package mcpseal protects the requestState of MCP servers (protocol revision
// 2026-07-28, multi round-trip requests).
//
// Most servers want another package: gosdk protects a server of the official Go SDK
// with one line, and gosdk/elicit lets its handlers ask as if they called a function.
// This one is what they stand on. Use it to write an adapter for another SDK.
//
// A handler that needs something from the user writes down what it has to
// remember, its state. The client keeps that text and sends it back with the
// answers, so whoever holds it can read it, change it, send it as somebody
// else, for another request, or years later. A [Boundary] puts a sealed token
// on the wire in its place: [Boundary.Seal] on the way out, [Boundary.Open] on
// the way in. A token opens only unchanged, in time, for the user, request and
// service that it was sealed for. Everything else is one error to the client
// and a [Reason] to the operator.
//
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com"})
//	…
//	round, err := boundary.Open(ctx, request, token) // "" on the first round
//	…
//	token, err := boundary.Seal(ctx, &round, &state, mcpseal.Question{Key: "confirm", Kind: mcpseal.KindForm})
//
// It imports only the standard library and keeps nothing between two rounds.
//
// The keys come from a [KeySource]: a [Ring] of keys that every replica
// shares, or [Ephemeral] for a single process. The parts that can be replaced
// are small interfaces, each with a suite in the sealtest package: [Codec] for
// crypto of one's own, [Format] for other tokens than the native one,
// [ReplayStore] for tokens that work once.
package mcpseal
