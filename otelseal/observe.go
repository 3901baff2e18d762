package otelseal

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tripseal/tripseal"
)

// The attributes that only spans have. Metrics must not have them, because clients can cause
// any number of different values.
const (
	attrFlow      = "tripseal.flow.id"
	attrRound     = "tripseal.flow.round"
	attrKey       = "tripseal.key.id"
	attrTokenSize = "tripseal.token.size"
	attrStateSize = "tripseal.state.size"
	attrDropped   = "tripseal.answers.dropped"
)

// Observe counts an event of a boundary or of cursors, and adds it to the span in the context.
// Pass it to tripseal.Config.Observer.
func (o *Observer) Observe(ctx context.Context, e tripseal.Event) {
	l := labels{operation: known(operations, e.Op), method: known(methods, e.Method), reason: string(e.Reason)}
	if e.Op == tripseal.OpSealHandle || e.Op == tripseal.OpOpenHandle {
		l.method = "" // handles have none
	}
	l.target = o.series.target(l.method, e.Target)
	if e.Op == tripseal.OpDrop {
		o.dropped.Add(ctx, int64(max(e.Dropped, 0)), o.series.of(labels{method: l.method}).add...)
	} else {
		o.operations.Add(ctx, 1, o.series.of(l).add...)
		o.duration.Record(ctx, e.Duration.Seconds(), o.series.of(labels{operation: l.operation, reason: l.reason}).record...)
	}
	if e.Op != tripseal.OpDrop && e.Reason == "" {
		o.tokenSize.Record(ctx, int64(e.TokenBytes), o.series.of(labels{operation: l.operation, format: e.Format}).record...)
	}
	if (e.Op == tripseal.OpSeal || e.Op == tripseal.OpOpen) && e.Reason == "" {
		o.stateSize.Record(ctx, int64(e.StateBytes), o.series.of(labels{operation: l.operation}).record...)
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		addToSpan(span, l, &e)
	}
}

// addToSpan adds an event to a span. It also sets the flow's id as an attribute of the span itself,
// because most tracing systems search the attributes of spans, but not those of events.
func addToSpan(span trace.Span, l labels, e *tripseal.Event) {
	name := "tripseal.other"
	if e.Op == tripseal.OpDrop || l.operation != other {
		name = "tripseal." + string(e.Op)
	}
	if e.Reason != "" {
		name = strings.Replace(name, ".open", ".reject", 1)
	}
	l.operation, l.format = "", e.Format
	attrs := l.attributes()
	if e.Flow != "" {
		flow := attribute.String(attrFlow, e.Flow)
		span.SetAttributes(flow)
		attrs = append(attrs, flow, attribute.Int(attrRound, e.Round))
	}
	if genuine := e.Reason == "" || e.Flow != ""; e.KeyID != "" && genuine { // a client may have made up any other
		attrs = append(attrs, attribute.String(attrKey, e.KeyID))
	}
	for name, n := range map[string]int{attrTokenSize: e.TokenBytes, attrStateSize: e.StateBytes, attrDropped: e.Dropped} {
		if n > 0 {
			attrs = append(attrs, attribute.Int(name, n))
		}
	}
	span.AddEvent(name, trace.WithAttributes(attrs...))
}
