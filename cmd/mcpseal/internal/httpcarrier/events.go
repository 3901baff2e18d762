package httpcarrier

import (
	"bytes"
	"io"
	"iter"
)

// events rewrites a stream of server-sent events while it flows. Comments leave at once. An
// event is held until the empty line that ends it; then it leaves as it came, with other
// data, or not at all. What is no field of an event by the specification does not leave.
type events struct {
	from io.ReadCloser
	// seal returns the message for the client, or nil if the client must not see it.
	seal func(message []byte) []byte
	// last returns the message that ends a stream without an answer, or nil if there is
	// nothing to say.
	last  func() []byte
	most  int // bytes of an event
	share *share
	fault func(error) // is told why a stream ends early

	chunk   []byte // what was read
	out     []byte // what the client gets next
	start   []byte // the first bytes, as long as they may be a byte order mark
	begun   bool   // start is done
	event   []byte // the lines of an event that is not complete, as they came
	line    int    // where the last line begins in event
	cr      bool   // the last byte was the CR of a line
	lf      fate   // what becomes of a LF that belongs to this CR
	ended   bool
	written int // bytes of out that the client has
}

// fate is what becomes of a line end.
type fate int

const (
	sent fate = iota // it goes to the client
	kept             // it is part of the event
	gone             // it belongs to what the client does not get
)

const chunkSize = 32 << 10

var byteOrderMark = []byte("\xef\xbb\xbf")

// Read returns what the client gets. The stream always ends with io.EOF, even after a
// failure: if Read returned an error, its only effect would be to cut off the connection.
func (e *events) Read(p []byte) (int, error) {
	for e.written == len(e.out) {
		if e.ended {
			return 0, io.EOF
		}
		if cap(e.out) > chunkSize {
			e.out = nil
		}
		e.out, e.written = e.out[:0], 0
		e.share.resize(cap(e.event) + cap(e.out)) // a silent stream holds nothing that it has sent
		if e.chunk == nil {
			e.chunk = copyBuffers{}.Get()
		}
		n, err := e.from.Read(e.chunk)
		e.feed(e.chunk[:n])
		if err != nil && !e.ended {
			e.end(nil)
		}
	}
	n := copy(p, e.out[e.written:])
	e.written += n
	return n, nil
}

func (e *events) Close() error {
	if e.share.release(); e.chunk != nil {
		copyBuffers{}.Put(e.chunk)
		e.chunk = nil
	}
	return e.from.Close()
}

// feed takes the next bytes of the stream.
func (e *events) feed(chunk []byte) {
	if !e.begun {
		if chunk = e.skipMark(chunk); !e.begun {
			return
		}
	}
	for len(chunk) > 0 && !e.ended {
		if e.cr && chunk[0] == '\n' {
			e.lineFeed()
			chunk = chunk[1:]
		}
		e.cr = false
		if len(chunk) == 0 {
			return
		}
		n := lineLength(chunk)
		if len(e.event)+n > e.most {
			e.end(errTooLong)
			return
		}
		e.event = append(e.event, chunk[:n]...)
		if last := chunk[n-1]; last == '\n' || last == '\r' {
			e.cr = last == '\r'
			e.lf = e.endOfLine()
		}
		chunk = chunk[n:]
		if !e.share.resize(cap(e.event) + cap(e.out)) {
			e.end(errNoBudget)
		}
	}
}

// skipMark sends a byte order mark at the start of the stream, and returns the rest.
func (e *events) skipMark(chunk []byte) []byte {
	e.start = append(e.start, chunk...)
	switch {
	case bytes.HasPrefix(e.start, byteOrderMark):
		e.out = append(e.out, byteOrderMark...)
		chunk = e.start[len(byteOrderMark):]
	case bytes.HasPrefix(byteOrderMark, e.start):
		return nil // it may still become one
	default:
		chunk = e.start
	}
	e.begun, e.start = true, nil
	return chunk
}

// lineLength returns how many bytes of the chunk belong to its first line. The LF of a CRLF
// comes later.
func lineLength(chunk []byte) int {
	const stride = 1 << 10 // so that the search for an LF does not pass many lines that end with a CR
	for at := 0; at < len(chunk); at += stride {
		part := chunk[at:min(at+stride, len(chunk))]
		end := bytes.IndexByte(part, '\n')
		if end >= 0 {
			part = part[:end]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			end = cr
		}
		if end >= 0 {
			return at + end + 1
		}
	}
	return len(chunk)
}

// lineFeed takes the LF of a CRLF.
func (e *events) lineFeed() {
	switch e.lf {
	case sent:
		e.out = append(e.out, '\n')
	case kept:
		e.event = append(e.event, '\n')
		e.line = len(e.event)
	}
}

// endOfLine takes a line that has come to its CR or LF.
func (e *events) endOfLine() fate {
	line := e.event[e.line:]
	switch {
	case line[0] == ':':
		e.out = append(e.out, line...)
		e.event = e.event[:e.line]
		return sent
	case len(line) > 1:
		e.line = len(e.event)
		return kept
	}
	is := e.endOfEvent()
	e.line, e.event = 0, e.event[:0]
	if cap(e.event) > chunkSize {
		e.event = nil
	}
	return is
}

// endOfEvent takes an event, with its empty line.
func (e *events) endOfEvent() fate {
	parsed := parseEvent(e.event)
	message := bytes.Trim(parsed.data, " \t\n")
	if len(message) == 0 {
		return e.send(parsed)
	}
	if !parsed.isMessage {
		return gone // no client reads a message in it
	}
	sealed := e.seal(parsed.data)
	switch {
	case sealed == nil:
		return gone
	case bytes.Equal(sealed, parsed.data):
		return e.send(parsed)
	}
	for f := range fields(e.event) {
		if f.name != "" && f.name != "data" {
			e.out = append(append(e.out, f.line...), '\n')
		}
	}
	e.sendData(sealed)
	return gone
}

// send sends an event as it came.
func (e *events) send(parsed event) fate {
	switch {
	case !parsed.foreign && len(e.out) == 0: // without a copy
		e.out, e.event = e.event, e.out
		return sent
	case !parsed.foreign:
		e.out = append(e.out, e.event...)
		return sent
	}
	for f := range fields(e.event) {
		if f.name != "" {
			e.out = append(append(e.out, f.line...), '\n')
		}
	}
	e.out = append(e.out, '\n')
	return gone
}

// sendData sends the data of an event, and its end. Line ends in a JSON text are only white
// space.
func (e *events) sendData(message []byte) {
	e.out = append(e.out, "data: "...)
	at := len(e.out)
	e.out = append(e.out, message...)
	for i, c := range e.out[at:] {
		if c == '\n' || c == '\r' {
			e.out[at+i] = ' '
		}
	}
	e.out = append(e.out, "\n\n"...)
}

// end ends the stream. An event that is not complete is dropped, as every client would.
func (e *events) end(why error) {
	e.ended = true
	e.event, e.line = nil, 0
	if why != nil {
		e.fault(why)
	}
	if message := e.last(); message != nil {
		e.sendData(message)
	}
}

// event is a parsed event.
type event struct {
	data      []byte
	isMessage bool // by its type
	foreign   bool // it has a line that is no field
}

// parseEvent parses the lines of an event, with the empty line at its end.
func parseEvent(text []byte) event {
	parsed := event{isMessage: true}
	lines := 0
	for f := range fields(text) {
		switch f.name {
		case "data":
			switch lines++; lines {
			case 1:
				parsed.data = f.value
			case 2:
				parsed.data = append(make([]byte, 0, len(text)), parsed.data...) // no longer a part of text
				fallthrough
			default:
				parsed.data = append(append(parsed.data, '\n'), f.value...)
			}
		case "event":
			parsed.isMessage = len(f.value) == 0 || string(f.value) == "message"
		case "":
			parsed.foreign = true
		}
	}
	return parsed
}

// field is a line of an event.
type field struct {
	name  string // "" if the line is no field that the specification knows
	line  []byte // the whole line, without its end
	value []byte
}

// fields yields the lines of an event that are not empty.
func fields(text []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(text) > 0 {
			n := lineLength(text)
			line := bytes.TrimRight(text[:n], "\r\n")
			text = text[n:]
			if len(line) == 0 {
				continue // the end of the event, or the LF of a CRLF
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			f := field{line: line, value: bytes.TrimPrefix(value, []byte(" "))}
			switch string(name) {
			case "data", "event", "id", "retry":
				f.name = string(name)
			}
			if !yield(f) {
				return
			}
		}
	}
}
