package wire

import (
	"bytes"
	"iter"
)

// events rewrites a stream of server-sent events while it flows. Comments are sent to the client at once. An event is
// held until the empty line that ends it; then it is sent as it came, sent with other data, or dropped. A line that the
// specification does not define as a field is never sent.
type events struct {
	// seal takes a message of the server. It returns the message that the client gets instead, or "" if the client must
	// get none.
	seal func(message string) string
	// dropped is called for an event that clients of this transport do not read, with its type.
	dropped func(kind string)
	most    int // the maximum length of an event, in bytes
	share   *share

	out     []byte // the bytes that the client gets next
	start   []byte // the first bytes, while they may still become a byte order mark
	begun   bool   // true if the search for a byte order mark is over
	event   []byte // the lines of the incomplete event so far, as they came
	line    int    // where the last line of e.event begins
	cr      bool   // true if the last byte was a CR that ended a line
	lf      fate   // what to do with an LF that follows a CR
	resumes bool   // true if the client got an id or a time to wait: then it may come back for the rest
	failed  error  // why the stream must end; nil if it may go on
}

// fate says what to do with the LF of a line that ends with CR LF.
type fate int

const (
	sent fate = iota // send the LF to the client
	kept             // add the LF to the event
	gone             // drop the LF
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// feed processes the next bytes from the server.
func (e *events) feed(chunk []byte) {
	if !e.begun {
		if chunk = e.skipMark(chunk); !e.begun {
			return
		}
	}
	for len(chunk) > 0 && e.failed == nil {
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
			e.failed = errTooLong
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
		if !e.share.resize(2*cap(e.event) + cap(e.out)) { // twice, because a message is copied to be sealed
			e.failed = errNoBudget
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
		e.dropped(parsed.kind) // clients read messages only in events of the type "message"
		return gone
	}
	data := string(parsed.data)
	sealed := e.seal(data)
	switch sealed {
	case "":
		return gone
	case data:
		return e.send(parsed)
	}
	e.resumes = e.resumes || parsed.resumes
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
	e.resumes = e.resumes || parsed.resumes
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
func (e *events) sendData(message string) {
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

// event is a parsed event.
type event struct {
	data      []byte
	kind      string // the type of the event; "" if it has none
	isMessage bool   // true if the event has the type "message" or no type
	foreign   bool   // true if the event has a line that is not a field
	resumes   bool   // true if the event has an id or a time to wait
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
			parsed.kind = string(f.value)
			parsed.isMessage = parsed.kind == "" || parsed.kind == "message"
		case "id", "retry":
			parsed.resumes = true
		case "":
			parsed.foreign = true
		}
	}
	return parsed
}

// eventLine is a line of an event.
type eventLine struct {
	name  string // "" if the specification does not define this field
	line  []byte // the whole line, without its end
	value []byte
}

// fields returns an iterator for the lines of an event. It leaves out empty lines.
func fields(text []byte) iter.Seq[eventLine] {
	return func(yield func(eventLine) bool) {
		for len(text) > 0 {
			n := lineLength(text)
			line := bytes.TrimRight(text[:n], "\r\n")
			text = text[n:]
			if len(line) == 0 {
				continue // the empty line that ends the event, or the LF after a CR
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			f := eventLine{line: line, value: bytes.TrimPrefix(value, []byte(" "))}
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
