package otelseal

import (
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// The names of attributes. OpenTelemetry's semantic conventions define the first five. The
// conventions for MCP may still change, so these names are constants here and not imported.
const (
	attrMethod      = "mcp.method.name"
	attrTool        = "gen_ai.tool.name"
	attrPrompt      = "gen_ai.prompt.name"
	attrScheme      = "url.scheme"
	attrReason      = "error.type"
	attrOperation   = "tripseal.operation"
	attrFormat      = "tripseal.token.format"
	attrHandle      = "tripseal.handle.kind"
	attrStoreResult = "tripseal.store.result"
)

// The value "_OTHER" replaces an attribute's value that is not in a list of known values. It also
// replaces every new value once there are too many.
const other = "_OTHER"

// maxOwn is how many series may name a target. It keeps operations below 2,000 series, beyond which the SDK merges them.
const maxOwn = 600

var (
	operations = []tripseal.Op{tripseal.OpSeal, tripseal.OpOpen, cursor.OpIssue, cursor.OpOpen, tripseal.OpSealHandle, tripseal.OpOpenHandle}
	methods    = []string{"tools/call", "prompts/get", "resources/read", "tools/list", "prompts/list", "resources/list", "resources/templates/list"}
	// targetAttrs has the attribute that names the target of a method, and of a handle, which has no method.
	targetAttrs = map[string]string{"tools/call": attrTool, "prompts/get": attrPrompt, "resources/read": attrScheme, "": attrHandle}
)

// known returns a value of the list, or "_OTHER".
func known[T ~string](list []T, value T) string {
	if slices.Contains(list, value) {
		return string(value)
	}
	return other
}

// labels are the attributes of a series. A field that is "" is absent.
type labels struct{ operation, method, target, reason, format, storeResult string }

func (l labels) attributes() (all []attribute.KeyValue) {
	for _, a := range [][2]string{{attrOperation, l.operation}, {attrMethod, l.method}, {targetAttrs[l.method], l.target},
		{attrReason, l.reason}, {attrFormat, l.format}, {attrStoreResult, l.storeResult}} {
		if a[0] == attrScheme {
			a[1] = strings.TrimSuffix(a[1], ":") // the convention for url.scheme has no colon
		}
		if a[1] != "" {
			all = append(all, attribute.String(a[0], a[1]))
		}
	}
	return all
}

// series makes the attributes of metrics. It makes each combination of attributes only once,
// so that an event needs no allocation. It also limits the number of combinations.
type series struct {
	allowed map[string]bool // the targets that metrics may name; nil means all

	mu   sync.Mutex // guards all fields below
	made map[labels]*options
	own  int // counts the entries of made with a target other than "" and "_OTHER", and then those that were refused
}

type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// of returns the attributes for the labels. It replaces the target by "_OTHER" if metrics may not
// name this target, or if they name too many targets already.
func (s *series) of(l labels) *options {
	if l.target != "" && s.allowed != nil && !s.allowed[l.target] {
		l.target = other
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.target != "" && l.target != other && s.made[l] == nil {
		if s.own++; s.own > maxOwn {
			l.target = other
		}
		l.target = strings.Clone(l.target) // the original may keep a long request in memory
	}
	made := s.made[l]
	if made == nil {
		set := metric.WithAttributeSet(attribute.NewSet(l.attributes()...))
		made = &options{[]metric.AddOption{set}, []metric.RecordOption{set}}
		s.made[l] = made
	}
	return made
}

// target returns the target of an event in a form that spans may show. It returns "" if the event
// has no target, if a client may have made the target up, or if no target may be named.
func (s *series) target(method, target string) string {
	switch attr, ok := targetAttrs[method]; {
	case !ok, s.allowed != nil && len(s.allowed) == 0:
		return ""
	case attr == attrHandle && target == "":
		return other
	case attr == attrHandle: // the author of the server chose the kind
	case target == tripseal.TargetUnknown, attr == attrScheme && !strings.HasSuffix(target, ":"): // a whole URI must not be shown
		return ""
	}
	return target
}
