package elicit

import (
	"encoding/base64"
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
	asked      wording // the question of the last round; zero if there was none
	askedAfter int     // its place: see answer.after

	made   wording // the question of this run; zero if it has not asked yet
	place  int     // its place: see answer.after
	fresh  bool    // true if the answer came in this round
	read   int     // the place of the answer in the order in which this run has read answers; 0 if it has not read it
	toSend *Question
}

// answer is a recorded answer.
type answer struct {
	to      wording // the question that it answers; zero if the answer counts no more
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
	put := func(field string) {
		b = strconv.AppendInt(b, int64(len(field)), 10)
		b = append(append(b, ':'), field...)
	}
	putInt := func(n int) { put(strconv.Itoa(n)) }
	kept := make([]string, 0, len(m.questions))
	for key, q := range m.questions {
		if q.action != "" || q.asked != (wording{}) {
			kept = append(kept, key)
		}
	}
	slices.Sort(kept)
	put(version)
	putInt(m.numbers)
	putInt(m.idle)
	put(m.seed)
	putInt(len(kept))
	for _, key := range kept {
		q := m.questions[key]
		put(key)
		put(q.asked.text())
		putInt(q.askedAfter)
		put(string(q.action))
		if q.action != "" {
			put(q.to.text())
			putInt(q.after)
			putInt(q.number)
			put(map[bool]string{true: "checked"}[q.checked])
			put(q.content)
		}
	}
	putInt(len(m.values))
	for _, key := range slices.Sorted(maps.Keys(m.values)) {
		put(key)
		put(m.values[key].text)
		putInt(m.values[key].after)
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
	n := r.count()
	m.questions = make(map[string]*question, n)
	list := make([]question, n)
	for i := range list {
		q, key := &list[i], r.field()
		q.asked, q.askedAfter = r.wording(), r.int()
		if q.action = Action(r.field()); q.action != "" {
			q.to, q.after, q.number, q.checked, q.content = r.wording(), r.int(), r.int(), r.field() != "", r.field()
			r.bad = r.bad || !q.action.valid()
		}
		m.questions[key] = q
	}
	for range r.count() {
		if m.values == nil {
			m.values = make(map[string]*value)
		}
		key := r.field()
		m.values[key] = &value{r.field(), r.int()}
	}
	if r.bad || r.text != "" {
		return memory{}, false
	}
	return m, true
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

// count reads how many entries follow, each of which has at least two bytes.
func (r *reader) count() int {
	if n := r.int(); !r.bad && n <= len(r.text)/2 {
		return n
	}
	r.bad = true
	return 0
}

func (r *reader) wording() (w wording) {
	field := r.field()
	if field == "" {
		return w
	}
	var all [len(w) + 2]byte // DecodeString would allocate
	n, err := 0, error(nil)
	if len(field) == base64.RawURLEncoding.EncodedLen(len(w)) {
		n, err = base64.RawURLEncoding.Decode(all[:], []byte(field))
	}
	r.bad = r.bad || err != nil || n != len(w)
	copy(w[:], all[:])
	return w
}
