package wire

import (
	"context"
	"strings"

	"github.com/tripseal/tripseal/internal/strictjson"
	"github.com/tripseal/tripseal/internal/whose"
)

// A mark tells a server in this process that a call came through a door: so a server can refuse a state on a transport
// that has none. Over HTTP the exchange itself is in the context of the request. Over standard input and output only
// the message reaches the server. So the door writes the mark of the call, a random text that the engine knows until
// the answer, into the call's _meta, and removes a mark that the client wrote there. No message takes a mark to the
// client, which could use it on a transport that has no door. Over HTTP, only a call whose state package elicit wrote
// has a mark. A handler may repeat it to the client, so the door removes it from every other call.

// MarkName is the member of a call's _meta that holds the mark of the call over standard input and output.
const MarkName = whose.MarkName

type exchangeKey struct{}

// Through returns the exchange of a call that came through a door of this engine, or nil if the call came in another
// way. The parameter mark is the text of the member [MarkName] in the call's _meta, or "" if it has none. A server
// calls Through before it trusts a state.
func (e *Engine) Through(ctx context.Context, mark string) *Exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*Exchange); ok && x.engine == e {
		return x
	}
	if x, ok := e.marks.Load(mark); ok {
		return x.(*Exchange)
	}
	return nil
}

func (x *Exchange) forgetMark() {
	if x != nil && x.mark != "" {
		x.engine.marks.Delete(x.mark)
		whose.Arrivals.Delete(x.mark)
	}
}

// unmarked returns a message of the server without the mark of the call, which a handler may have repeated.
func (x *Exchange) unmarked(message string) string {
	if x.mark == "" {
		return message
	}
	return strings.ReplaceAll(message, x.mark, "")
}

// hasMark reports whether the JSON text of a _meta has a mark, which may be that of another call.
func hasMark(meta string) bool {
	if !strings.HasPrefix(meta, "{") {
		return false
	}
	members := strictjson.ReadMembers(meta)
	for member, ok := members.Next(); ok; member, ok = members.Next() {
		if member.Name == MarkName {
			return true
		}
	}
	return false
}

// marked returns the JSON text of a _meta with a mark. It leaves a _meta that is not an object as it is: the server
// refuses it.
func marked(meta, mark string) string {
	switch {
	case meta == "" || meta == "null":
		return `{"` + MarkName + `":"` + mark + `"}`
	case strings.HasPrefix(meta, "{"):
		return changes{{MarkName, `"` + mark + `"`}}.apply(meta, 0, meta)
	}
	return meta
}
