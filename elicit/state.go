package elicit

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// memory is what a call remembers between two rounds. It is sealed before it leaves the server.
type memory struct {
	questions map[string]*question
	values    map[string]*value
	numbers   int    // how many answers have been numbered: see answer.number
	idle      int    // how many rounds in a row brought no answer that counts
	seed      string // a random text that the ids of URL questions are made from; "" if there are none
}

// question is all that is known of the questions of one key: the one that was answered, and the one of this run.
type question struct {
	answer
	asked      wording // the question of the last round; "" if there was none
	askedAfter int     // its place: see answer.after

	made   wording // the question of this run; "" if it has not asked yet
	place  int     // its place: see answer.after
	fresh  bool    // true if the answer came in this round
	read   int     // the place of the answer in the order in which this run has read answers; 0 if it has not read it
	toSend *Question
}

// answer is a recorded answer.
type answer struct {
	to      wording // the question that it answers; "" if the answer counts no more
	after   int     // the highest number among the answers that the handler had read when it asked
	number  int     // the place of the answer in the order in which the handler first read answers; 0 if it was not read
	action  Action  // "" if there is no answer
	checked bool    // true if the content was compared with the form, and is in the form's own spelling
	content string  // the JSON text of what was accepted
}

// value is what [Once] computed.
type value struct {
	text  string
	after int // the highest number among the answers that the handler had read when the value was computed
}

// The version begins a state. Another version is no state of this package.
const version = "1"

// A state is a list of fields, each with its length in front: the fields of the memory, then those of each question
// that was asked or answered, then those of each value. So it is read without copying.

func (m *memory) text() string {
	b := make([]byte, 0, 512)
	put := func(fields ...string) {
		for _, field := range fields {
			b = append(append(strconv.AppendInt(b, int64(len(field)), 10), ':'), field...)
		}
	}
	put(version, strconv.Itoa(m.numbers), strconv.Itoa(m.idle), m.seed)
	for _, key := range slices.Sorted(maps.Keys(m.questions)) {
		if q := m.questions[key]; q.action != "" || q.asked != "" {
			put("question", key, string(q.asked), strconv.Itoa(q.askedAfter), string(q.action), string(q.to),
				strconv.Itoa(q.after), strconv.Itoa(q.number), strconv.FormatBool(q.checked), q.content)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.values)) {
		put("value", key, m.values[key].text, strconv.Itoa(m.values[key].after))
	}
	return string(b)
}

// readMemory reads what [memory.text] wrote. Any other text counts as no state: ok is false.
func readMemory(text string) (m memory, ok bool) {
	r := reader{text: text}
	if r.field() != version {
		return memory{}, false
	}
	m.numbers, m.idle, m.seed = r.int(), r.int(), r.field()
	m.questions, m.values = make(map[string]*question), make(map[string]*value)
	for r.text != "" {
		switch r.field() {
		case "question":
			q, key := new(question), r.field()
			q.asked, q.askedAfter, q.action = wording(r.field()), r.int(), Action(r.field())
			q.to, q.after, q.number = wording(r.field()), r.int(), r.int()
			q.checked, q.content = r.field() == "true", r.field()
			r.bad = r.bad || q.action != "" && !q.action.valid()
			m.questions[key] = q
		case "value":
			key := r.field()
			m.values[key] = &value{r.field(), r.int()}
		default:
			return memory{}, false
		}
	}
	return m, !r.bad
}

// reader cuts fields off a text. After a fault, bad is true and all fields are empty.
type reader struct {
	text string
	bad  bool
}

func (r *reader) field() string {
	length, _, ok := strings.Cut(r.text[:min(len(r.text), 20)], ":")
	n, err := strconv.Atoi(length)
	from := len(length) + 1
	if !ok || err != nil || n < 0 || n > len(r.text)-from {
		r.text, r.bad = "", true
		return ""
	}
	field := r.text[from : from+n]
	r.text = r.text[from+n:]
	return field
}

func (r *reader) int() int {
	n, err := strconv.Atoi(r.field())
	r.bad = r.bad || err != nil || n < 0
	return n
}
