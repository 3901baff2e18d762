// Package otelseal reports to OpenTelemetry what mcpseal does: metrics of boundaries, cursors,
// keys and the store of used tokens, and events on the span of each request. It needs only the
// OpenTelemetry API. Your program chooses the SDK and the exporter.
//
// Make one [Observer] in your program, and pass it to everything that it shall observe:
//
//   - [Observer.Observe] to mcpseal.Config.Observer and cursor.Config.Observer
//   - [Observer.ObserveKeys] to keys.Options.Observer
//   - the store that [Observer.Store] returns to mcpseal.Config.Replay
//
// The number of time series has a bound, whatever clients send: see docs/telemetry.md, which
// also lists every metric and attribute. No metric and no span gets a token, a state, a
// user, an argument, a URI or the text of an error.
package otelseal
