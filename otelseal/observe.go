package otelseal

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
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
// Pass it to tripseal.Config.Observer, and to cursor.Config.Observer if you make cursors
// without an adapter.
func (o *Observer) Observe(ctx context.Context, e tripseal.Event) {
	k := kind{operations.index(string(e.Op)), methods.index(e.Method), reasons.index(string(e.Reason)), ""}
	if e.Op == tripseal.OpSealHandle || e.Op == tripseal.OpOpenHandle {
		k.method = ofHandles
	}
	k.target = o.labels.target(k.method, e.Target)
	if e.Op == tripseal.OpDrop {
		o.dropped.Add(ctx, int64(max(e.Dropped, 0)), o.labels.drops[k.method]...)
	} else {
		o.operations.Add(ctx, 1, o.labels.count(k)...)
		o.duration.Record(ctx, e.Duration.Seconds(), o.labels.durations[k.operation][k.reason]...)
		if e.Reason == "" {
			o.tokenSize.Record(ctx, int64(e.TokenBytes), o.labels.size(k.operation, e.Format)...)
			if e.Op == tripseal.OpSeal || e.Op == tripseal.OpOpen {
				o.stateSize.Record(ctx, int64(e.StateBytes), o.labels.states[k.operation]...)
			}
		}
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		addToSpan(span, k, &e)
	}
}

// addToSpan adds an event to a span. It also sets the flow's id as an attribute of the span itself,
// because most tracing systems search the attributes of spans, but not those of events.
func addToSpan(span trace.Span, k kind, e *tripseal.Event) {
	attrs := make([]attribute.KeyValue, 0, 10)
	if k.method != ofHandles {
		attrs = append(attrs, attribute.String(attrMethod, methods[k.method]))
	}
	if k.target != "" {
		attrs = append(attrs, targetAttr(k.method, k.target))
	}
	if k.reason > 0 {
		attrs = append(attrs, attribute.String(attrReason, reasons[k.reason]))
	}
	if e.Flow != "" {
		flow := attribute.String(attrFlow, plainText(e.Flow))
		span.SetAttributes(flow)
		attrs = append(attrs, flow, attribute.Int(attrRound, e.Round))
	}
	if e.KeyID != "" && isGenuine(e) {
		attrs = append(attrs, attribute.String(attrKey, plainText(e.KeyID)))
	}
	if e.Format != "" {
		attrs = append(attrs, attribute.String(attrFormat, plainText(e.Format)))
	}
	if e.TokenBytes > 0 {
		attrs = append(attrs, attribute.Int(attrTokenSize, e.TokenBytes))
	}
	if e.StateBytes > 0 {
		attrs = append(attrs, attribute.Int(attrStateSize, e.StateBytes))
	}
	if e.Op == tripseal.OpDrop {
		attrs = append(attrs, attribute.Int(attrDropped, e.Dropped))
	}
	span.AddEvent(spanEvent(e), trace.WithAttributes(attrs...))
}

// spanEvent returns the name under which an event is added to a span.
func spanEvent(e *tripseal.Event) string {
	switch e.Op {
	case tripseal.OpSeal:
		return "tripseal.seal"
	case tripseal.OpOpen:
		if e.Reason != "" {
			return "tripseal.reject"
		}
		return "tripseal.open"
	case tripseal.OpDrop:
		return "tripseal.drop"
	case cursor.OpIssue:
		return "tripseal.issue_cursor"
	case cursor.OpOpen:
		if e.Reason != "" {
			return "tripseal.reject_cursor"
		}
		return "tripseal.open_cursor"
	case tripseal.OpSealHandle:
		return "tripseal.seal_handle"
	case tripseal.OpOpenHandle:
		if e.Reason != "" {
			return "tripseal.reject_handle"
		}
		return "tripseal.open_handle"
	}
	return "tripseal.other"
}

// isGenuine reports whether the event's token was certainly sealed with a key of this service,
// so that its key id was not made up by a client.
func isGenuine(e *tripseal.Event) bool {
	switch {
	case e.Reason == "" || e.Flow != "":
		return true
	case e.Op == cursor.OpOpen, e.Op == tripseal.OpOpenHandle:
		// Cursors and handles have no flow. Their key is checked before their age. So if one was
		// rejected for its age, the key was genuine.
		return e.Reason == tripseal.ReasonExpired || e.Reason == tripseal.ReasonFromTheFuture
	}
	return false
}
