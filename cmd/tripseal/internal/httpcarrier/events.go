package httpcarrier

import (
	"bytes"
	"io"
	"iter"
)

// events rewrites a stream of server-sent events while it flows. Comments are sent to the
// client at once. An event is held until the empty line that ends it; then it is sent as it
// came, sent with other data, or dropped. A line that the specification does not define as a
// field is never sent.
type events struct {
	from io.ReadCloser
	// seal takes a message of the server. It returns the message that the client gets
	// instead, or nil if the client must get none.
	seal func(message []byte) []byte
	// last is called when the stream ends. It returns an error message if the client still
	// waits for an answer, and otherwise nil.
	last  func() []byte
	most  int // the maximum length of an event, in bytes
	share *share
	fault func(error) // called when the carrier ends the stream early; the error says why

	chunk   []byte // the buffer for reading from the server
	out     []byte // the bytes that the client gets next
	start   []byte // the first bytes, while they may still become a byte order mark
	begun   bool   // true if the search for a byte order mark is over
	event   []byte // the lines of the incomplete event so far, as they came
	line    int    // where the last line of e.event begins
	cr      bool   // true if the last byte was a CR that ended a line
	lf      fate   // what to do with an LF that follows a CR
	ended   bool
	written int // how many bytes of e.out the client has already got
}

// fate says what to do with the LF of a line that ends with CR LF.
type fate int

const (
	sent fate = iota // send the LF to the client
	kept             // add the LF to the event
	gone             // drop the LF
)

const chunkSize = 32 << 10

var byteOrderMark = []byte("\xef\xbb\xbf")

// Read reads the stream that the client gets. That stream always ends with io.EOF, even after
// a failure, because any error except io.EOF would cut the client's connection.
func (e *events) Read(p []byte) (int, error) {
	for e.written == len(e.out) {
		if e.ended {
			return 0, io.EOF
		}
		if cap(e.out) > chunkSize {
			e.out = nil
		}
		e.out, e.written = e.out[:0], 0
		e.share.resize(cap(e.event) + cap(e.out)) // a large buffer that was dropped no longer uses the budget
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

// feed processes the next bytes from the server.
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
		if last := len(e.event) - 1; last >= 0 && e.event[last] == '\r' && chunk[0] == '\n' {
			// A comment line was between this CR and this LF, and has already been sent. The CR
			// ends a line, and the LF is an empty line. Side by side, they would count as one line
			// end. So change the CR into an LF.
			e.event[last] = '\n'
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

// skipMark processes the first bytes of the stream. If they are a byte order mark, it sends
// the mark to the client. It returns the bytes after the mark.
func (e *events) skipMark(chunk []byte) []byte {
	e.start = append(e.start, chunk...)
	switch {
	case bytes.HasPrefix(e.start, byteOrderMark):
		e.out = append(e.out, byteOrderMark...)
		chunk = e.start[len(byteOrderMark):]
	case bytes.HasPrefix(byteOrderMark, e.start):
		return nil // the bytes may still become a byte order mark
	default:
		chunk = e.start
	}
	e.begun, e.start = true, nil
	return chunk
}

// lineLength returns the length of the first line of the chunk, with its CR or LF. A line that
// ends with CR LF is counted up to the CR only.
func lineLength(chunk []byte) int {
	const stride = 1 << 10 // without this limit, each search for an LF would read the whole chunk if all lines end with a CR
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

// lineFeed processes an LF right after the CR that ended a line.
func (e *events) lineFeed() {
	switch e.lf {
	case sent:
		e.out = append(e.out, '\n')
	case kept:
		e.event = append(e.event, '\n')
		e.line = len(e.event)
	}
}

// endOfLine processes the last line of e.event, which has just ended with a CR or an LF. It
// returns what to do with an LF that follows a CR.
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

// endOfEvent processes e.event, which has just ended with an empty line. It returns what to do
// with an LF that follows a CR.
func (e *events) endOfEvent() fate {
	parsed := parseEvent(e.event)
	message := bytes.Trim(parsed.data, " \t\n")
	if len(message) == 0 {
		return e.send(parsed)
	}
	if !parsed.isMessage {
		return gone // clients read messages only in events of the type "message"
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

// send sends an event as it came, but without the lines that are not fields.
func (e *events) send(parsed event) fate {
	switch {
	case !parsed.foreign && len(e.out) == 0: // swap the buffers instead of copying
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

// sendData sends the data of an event, and the empty line that ends it. It replaces CR and LF
// in the message by spaces, because CR and LF in JSON are always white space.
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

// end ends the stream. It drops an event that is not complete, as every client would do.
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
	isMessage bool // true if the event has the type "message" or no type
	foreign   bool // true if the event has a line that is not a field
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
				parsed.data = append(make([]byte, 0, len(text)), parsed.data...) // a copy, so that append does not overwrite the caller's bytes
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
	name  string // "" if the specification does not define this field
	line  []byte // the whole line, without its end
	value []byte
}

// fields returns an iterator for the lines of an event. It leaves out empty lines.
func fields(text []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(text) > 0 {
			n := lineLength(text)
			line := bytes.TrimRight(text[:n], "\r\n")
			text = text[n:]
			if len(line) == 0 {
				continue // the empty line that ends the event, or the LF after a CR
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
