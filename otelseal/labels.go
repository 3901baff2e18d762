package otelseal

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
)

// The names of attributes. OpenTelemetry's conventions define the first five. Those for MCP may
// still change, so the names are written here and not imported.
const (
	attrMethod = "mcp.method.name"
	attrTool   = "gen_ai.tool.name"
	attrPrompt = "gen_ai.prompt.name"
	attrScheme = "url.scheme"
	attrReason = "error.type"

	attrOperation   = "mcpseal.operation"
	attrFormat      = "mcpseal.token.format"
	attrStoreResult = "mcpseal.store.result"
)

// other is the value of an attribute whose true value is not in the attribute's list.
const other = "_OTHER"

const (
	// maxOwn is how many combinations that name a target get a series of their own. With it,
	// the counter of operations stays below 2,000 series. That is the SDK's usual limit for an
	// instrument, and beyond it the SDK merges series without regard to the reason.
	maxOwn = 600
	// maxFormats is how many formats metrics name.
	maxFormats = 8
	// maxText is the greatest length of an attribute's value.
	maxText = 128
)

// A list holds the values that an attribute may have. The last one takes the place of all
// other values.
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
	operations = list{string(mcpseal.OpSeal), string(mcpseal.OpOpen), string(cursor.OpIssue), string(cursor.OpOpen), other}

	methods = list{"tools/call", "prompts/get", "resources/read",
		"tools/list", "prompts/list", "resources/list", "resources/templates/list", other}
	// targetAttrs has the attributes for the targets of the first methods. Other methods have no targets.
	targetAttrs = []string{attrTool, attrPrompt, attrScheme}

	reasons = list{"", // the operation succeeded
		string(mcpseal.ReasonMalformed), string(mcpseal.ReasonUnknownKey), string(mcpseal.ReasonForged), string(mcpseal.ReasonTooLarge),
		string(mcpseal.ReasonVersion), string(mcpseal.ReasonRequest), string(mcpseal.ReasonArguments), string(mcpseal.ReasonAudience),
		string(mcpseal.ReasonUser), string(mcpseal.ReasonExpired), string(mcpseal.ReasonFromTheFuture), string(mcpseal.ReasonFlowExpired),
		string(mcpseal.ReasonTooManyRounds), string(mcpseal.ReasonReplayed), string(mcpseal.ReasonClaimMissing),
		string(mcpseal.ReasonCodecFailed), string(mcpseal.ReasonPrincipalFailed), string(mcpseal.ReasonStoreFailed),
		string(mcpseal.ReasonCanceled), string(mcpseal.ReasonInvalidParams), string(mcpseal.ReasonBadQuestions), string(mcpseal.ReasonMisuse),
		other}
)

// kind is what the labels of an event are made of: indexes of the lists above.
type kind struct {
	operation, method, reason int
	target                    string // "" means none
}

// labels makes the attributes of metrics. It makes each combination once, so that an event
// costs no allocation, and it limits how many combinations there are.
type labels struct {
	allowed map[string]bool // the targets that metrics may name; nil means all
	none    bool            // true if nothing may name a target

	durations [][][]metric.RecordOption // by operation and reason
	states    [][]metric.RecordOption   // by operation
	drops     [][]metric.AddOption      // by method

	mu      sync.RWMutex // guards all fields below
	counts  map[kind][]metric.AddOption
	own     int                                // how many of counts name a target
	formats map[string][][]metric.RecordOption // by format and operation
}

func newLabels(targets []string) *labels {
	l := &labels{counts: make(map[kind][]metric.AddOption), formats: make(map[string][][]metric.RecordOption)}
	if targets != nil {
		l.none, l.allowed = len(targets) == 0, make(map[string]bool)
	}
	for _, target := range targets {
		l.allowed[mcpseal.PlainText(target)] = true // as an event has it
	}
	for i := range operations {
		var row [][]metric.RecordOption
		for j := range reasons {
			row = append(row, record(kindAttrs(kind{operation: i, method: -1, reason: j})...))
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

// kindAttrs returns the attributes of a kind. It leaves out a method of -1, a reason of 0 and
// a target of "".
func kindAttrs(k kind) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(attrOperation, operations[k.operation])}
	if k.method >= 0 {
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
	name := targetAttrs[method]
	if name == attrScheme {
		target = strings.TrimSuffix(target, ":") // the convention has no colon
	}
	return attribute.String(name, target)
}

// target returns the target of an event in a form that a span may show, or "" if there is
// none or a client may have made it up.
func (l *labels) target(method int, target string) string {
	if l.none || method >= len(targetAttrs) || target == "" || target == mcpseal.TargetUnknown {
		return ""
	}
	if targetAttrs[method] == attrScheme && !isScheme(target) {
		return "" // never a URI
	}
	return plainText(target)
}

// isScheme reports whether text is the scheme of a URI with its colon, as in an event.
func isScheme(text string) bool {
	scheme, ok := strings.CutSuffix(text, ":")
	return ok && scheme != "" && len(scheme) <= 32 &&
		strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// plainText returns text as it is if it is short plain ASCII, and quoted and cut otherwise.
// The texts of a boundary's events already are as they should be.
func plainText(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || i == maxText {
			return mcpseal.PlainText(text)
		}
	}
	return text
}

// count returns the labels with which an operation is counted.
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
		k.target = strings.Clone(k.target) // the original may be a part of a long request
	}
	options = add(kindAttrs(k)...)
	l.counts[k] = options
	return options
}

// size returns the labels for the size of a token.
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
