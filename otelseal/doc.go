// Package otelseal reports to OpenTelemetry what tripseal does. It makes metrics of boundaries,
// cursors, keys and the store of used tokens, and adds events to the span of each request. It
// needs only the OpenTelemetry API. Your program chooses the SDK and the exporter.
//
// Make one [Observer] in your program, and connect it to everything that it should observe:
//
//   - set tripseal.Config.Observer to [Observer.Observe]
//   - set keys.Options.Observer to [Observer.ObserveKeys]
//   - set tripseal.Config.Replay to the store that [Observer.Store] returns
//
// The number of time series is limited, whatever clients send: see docs/telemetry.md. No metric and
// no span gets a token, a state, a user, an argument, a URI or the text of an error.
package otelseal
