package cursor

import (
	"bytes"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/inspect"
	"github.com/tripseal/tripseal/internal/strictjson"
)

func init() { inspect.ReadCursor = inspectCursor }

// inspectCursor decodes the payload of a cursor. Only the tripseal command uses it.
func inspectCursor(payload []byte) (inspect.Cursor, error) {
	payload = bytes.Clone(payload)
	r, head, reason := parseRecord(payload)
	if reason != "" {
		return inspect.Cursor{}, reason
	}
	return inspect.Cursor{
		Issued: r.issued, Expires: r.issued + r.lifetime, Number: r.number, Position: r.position,
		User: r.who == forUser, Everybody: r.who == forEverybody,
		BoundTo: func(b inspect.Binding) (string, error) {
			arguments, err := strictjson.Sum(b.Arguments)
			if err != nil {
				return "", err
			}
			service, who := serviceDigest(b.Audience, b.Epoch), byte(forNobody)
			switch {
			case r.who == forEverybody:
				who, b.User = forEverybody, ""
			case b.User != "":
				who = forUser
			}
			bound := bind(&service, &tripseal.Request{Method: b.Method, Target: b.Target}, &arguments, who, b.User)
			return string(boundTo(head, &bound)), nil
		},
		InTime: func(at time.Time) string { return string(r.inTime(at.UnixMilli())) },
	}, nil
}
