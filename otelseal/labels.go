package otelseal

import (
	"cmp"
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
	attrMethod = "mcp.method.name"
	attrTool   = "gen_ai.tool.name"
	attrPrompt = "gen_ai.prompt.name"
	attrScheme = "url.scheme"
	attrReason = "error.type"

	attrOperation   = "tripseal.operation"
	attrFormat      = "tripseal.token.format"
	attrHandle      = "tripseal.handle.kind"
	attrStoreResult = "tripseal.store.result"
)

// The value "_OTHER" replaces an attribute's value that is not in a list of known values. It also
// replaces every new value once there are too many.
const other = "_OTHER"

const (
	// maxOwn is the maximum number of series that name a target. It keeps the counter of
	// operations below 2,000 series, the usual limit of the SDK for an instrument. Beyond
	// that limit the SDK merges series, even if their reasons differ.
	maxOwn = 600
	// maxFormats is how many formats of tokens appear in metrics under their own names. All
	// others appear as "_OTHER".
	maxFormats = 8
	// maxText is the maximum length of an attribute's value, in bytes. A longer text is shortened.
	maxText = 128
)

// ofHandles stands for the index of a method in the events of handles, which have none. Their target
// is the kind of the handle.
const ofHandles = -1

// A list holds the values that an attribute may have. Any value that is not in the list is
// replaced by the last value of the list.
type list []string

func (l list) index(value string) int {
	for i, known := range l {
		if known == value {
			return i
		}
	}
	return len(l) - 1
}

var (
	operations = list{string(tripseal.OpSeal), string(tripseal.OpOpen), string(cursor.OpIssue), string(cursor.OpOpen),
		string(tripseal.OpSealHandle), string(tripseal.OpOpenHandle), other}

	methods = list{"tools/call", "prompts/get", "resources/read",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list", other}
	// targetAttrs has the attribute that names the target, for each of the first three methods.
	// The other methods have no target.
	targetAttrs = []string{attrTool, attrPrompt, attrScheme}

	reasons = list{"", // the operation succeeded
		string(tripseal.ReasonMalformed), string(tripseal.ReasonUnknownKey), string(tripseal.ReasonForged), string(tripseal.ReasonTooLarge),
		string(tripseal.ReasonVersion), string(tripseal.ReasonRequest), string(tripseal.ReasonArguments), string(tripseal.ReasonAudience),
		string(tripseal.ReasonUser), string(tripseal.ReasonExpired), string(tripseal.ReasonFromTheFuture), string(tripseal.ReasonFlowExpired),
		string(tripseal.ReasonTooManyRounds), string(tripseal.ReasonReplayed), string(tripseal.ReasonClaimMissing),
		string(tripseal.ReasonCodecFailed), string(tripseal.ReasonPrincipalFailed), string(tripseal.ReasonStoreFailed),
		string(tripseal.ReasonCanceled), string(tripseal.ReasonInvalidParams), string(tripseal.ReasonBadQuestions), string(tripseal.ReasonMisuse),
		other}
)

// kind is what the labels of an event are made from. The numbers are indexes into the lists
// above.
type kind struct {
	operation, method, reason int
	target                    string // "" if no target is named
}

// labels makes the attributes of metrics. It makes each combination of attributes only once,
// so that an event needs no allocation. It also limits the number of combinations.
type labels struct {
	allowed map[string]bool // the targets that metrics may name; nil means all
	none    bool            // true if neither metrics nor spans may name a target

	durations [][][]metric.RecordOption // the indexes are operation and reason
	states    [][]metric.RecordOption   // the index is the operation
	drops     [][]metric.AddOption      // the index is the method

	mu      sync.RWMutex // guards all fields below
	counts  map[kind][]metric.AddOption
	own     int                                // how many entries of counts have a target other than "" and "_OTHER"
	formats map[string][][]metric.RecordOption // the key is the format, the index is the operation
}

func newLabels(targets []string) *labels {
	l := &labels{counts: make(map[kind][]metric.AddOption), formats: make(map[string][][]metric.RecordOption)}
	if targets != nil {
		l.none, l.allowed = len(targets) == 0, make(map[string]bool)
	}
	for _, target := range targets {
		l.allowed[tripseal.PlainText(target)] = true // events have their targets in this form
	}
	for i := range operations {
		var row [][]metric.RecordOption
		for j := range reasons {
			row = append(row, record(kindAttrs(kind{operation: i, method: ofHandles, reason: j})...))
		}
		l.durations = append(l.durations, row)
		l.states = append(l.states, record(attribute.String(attrOperation, operations[i])))
	}
	for _, method := range methods {
		l.drops = append(l.drops, add(attribute.String(attrMethod, method)))
	}
	return l
}

func add(attrs ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

func record(attrs ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// kindAttrs returns the attributes of a kind. It leaves out the method if k.method is
// ofHandles, the reason if k.reason is 0, and the target if k.target is "".
func kindAttrs(k kind) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(attrOperation, operations[k.operation])}
	if k.method != ofHandles {
		attrs = append(attrs, attribute.String(attrMethod, methods[k.method]))
	}
	if k.target != "" {
		attrs = append(attrs, targetAttr(k.method, k.target))
	}
	if k.reason > 0 {
		attrs = append(attrs, attribute.String(attrReason, reasons[k.reason]))
	}
	return attrs
}

func targetAttr(method int, target string) attribute.KeyValue {
	if method == ofHandles {
		return attribute.String(attrHandle, target)
	}
	name := targetAttrs[method]
	if name == attrScheme {
		target = strings.TrimSuffix(target, ":") // the convention for url.scheme has no colon
	}
	return attribute.String(name, target)
}

// target returns the target of an event in a form that spans may show. It returns "" if the
// event has no target, if a client may have made the target up, or if no target may be named.
func (l *labels) target(method int, target string) string {
	if method == ofHandles && !l.none {
		return cmp.Or(plainText(target), other) // the author of the server chose the kind
	}
	if l.none || method >= len(targetAttrs) || target == "" || target == tripseal.TargetUnknown {
		return ""
	}
	if targetAttrs[method] == attrScheme && !isScheme(target) {
		return "" // the target may be a whole URI, which must not be shown
	}
	return plainText(target)
}

// isScheme reports whether text is the scheme of a URI with its colon, such as "file:". Events
// have schemes in this form.
func isScheme(text string) bool {
	scheme, ok := strings.CutSuffix(text, ":")
	return ok && scheme != "" && len(scheme) <= 32 &&
		strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// plainText returns a text of printable ASCII characters unchanged if it has at most maxText
// bytes. It quotes and shortens any other text. The texts in the events of a boundary already
// have this form, so plainText does not change them.
func plainText(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || i == maxText {
			return tripseal.PlainText(text)
		}
	}
	return text
}

// count returns the labels for the counter of operations. It replaces the target by "_OTHER" if
// metrics may not name this target, or if they name too many targets already.
func (l *labels) count(k kind) []metric.AddOption {
	if k.target != "" && l.allowed != nil && !l.allowed[k.target] {
		k.target = other
	}
	l.mu.RLock()
	options, ok := l.counts[k]
	l.mu.RUnlock()
	if ok {
		return options
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	named := k.target != "" && k.target != other
	if _, ok := l.counts[k]; !ok && named && l.own >= maxOwn {
		k.target, named = other, false
	}
	if options, ok := l.counts[k]; ok {
		return options
	}
	if named {
		l.own++
		k.target = strings.Clone(k.target) // a copy, because the original may keep a long request in memory
	}
	options = add(kindAttrs(k)...)
	l.counts[k] = options
	return options
}

// size returns the labels for the size of a token in this format.
func (l *labels) size(operation int, format string) []metric.RecordOption {
	l.mu.RLock()
	options, ok := l.formats[format]
	l.mu.RUnlock()
	if ok {
		return options[operation]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.formats[format]; !ok && len(l.formats) >= maxFormats {
		format = other
	}
	if options, ok := l.formats[format]; ok {
		return options[operation]
	}
	format = strings.Clone(format)
	for i := range operations {
		options = append(options, record(attribute.String(attrOperation, operations[i]), attribute.String(attrFormat, plainText(format))))
	}
	l.formats[format] = options
	return options[operation]
}
