package wire

import (
	"bytes"
	"slices"
)

// events rewrites a stream of server-sent events while it flows. Comments are sent to the client at once. An event is
// held until the empty line that ends it; then its message is sent as it came, sent with what the engine changed, or
// dropped. Lines end with LF then, and a line that the specification does not define as a field is never sent.
type events struct {
	// seal takes a message of the server. It returns the message that the client gets instead, or an empty one if the
	// client must get none.
	seal func(message []byte) []byte
	// dropped is called for an event that clients of this transport do not read, with its type.
	dropped func(kind string)
	most    int // the maximum length of an event, in bytes
	share   *share

	out     []byte // the bytes that the client gets next
	line    []byte // the line that has not ended yet
	afterCR bool   // true if the last byte was a CR: an LF after it belongs to the same line end
	begun   bool   // true after the first line
	event   event
	resumes bool  // true if the client got an id or a time to wait: then it may come back for the rest
	failed  error // why the stream must end; nil if it may go on
}

// event is what has come of an event so far.
type event struct {
	fields  []byte // the lines of its fields but data, each with an LF
	data    []byte // the values of its data fields, with an LF between them
	hasData bool
	kind    string // the type of the event; "" if it has none
	resumes bool   // true if it has an id or a time to wait
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// feed processes the next bytes from the server.
func (e *events) feed(chunk []byte) {
	for len(chunk) > 0 && e.failed == nil {
		if e.afterCR && chunk[0] == '\n' {
			chunk = chunk[1:]
		}
		var part []byte
		part, chunk, e.afterCR = bytes.Cut(chunk, []byte("\r"))
		for more := true; more && e.failed == nil; {
			var piece []byte
			piece, part, more = bytes.Cut(part, []byte("\n"))
			e.add(piece, more || e.afterCR)
		}
	}
}

// add adds a piece to the line, which ends with it or goes on.
func (e *events) add(piece []byte, ended bool) {
	switch {
	case len(e.line)+len(e.event.fields)+len(e.event.data)+len(piece) >= e.most:
		e.failed = errTooLong
		e.line, e.event = nil, event{}
		return
	case !ended:
		e.line = append(e.line, piece...)
	case len(e.line) > 0:
		e.endOfLine(append(e.line, piece...))
		if e.line = e.line[:0]; cap(e.line) > chunkSize {
			e.line = nil
		}
	default:
		e.endOfLine(piece)
	}
	if !e.share.resize(e.size()) {
		e.failed = errNoBudget
	}
}

// size returns how many bytes the stream uses in memory.
func (e *events) size() int {
	held := cap(e.line) + cap(e.event.fields) + cap(e.event.data)
	return 2*held + cap(e.out) // twice, because a message is copied to be sealed
}

// endOfLine processes a line, which has just ended.
func (e *events) endOfLine(line []byte) {
	if !e.begun {
		e.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) == 0 {
		e.endOfEvent()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch of := &e.event; string(name) {
	case "": // a comment
		e.out = append(append(e.out, line...), '\n')
	case "data":
		if of.hasData {
			of.data = append(of.data, '\n')
		}
		of.data, of.hasData = append(of.data, value...), true
	case "event":
		of.kind = string(value)
		of.fields = append(append(of.fields, line...), '\n')
	case "id", "retry":
		of.resumes = true
		of.fields = append(append(of.fields, line...), '\n')
	}
}

// endOfEvent processes the event, which has just ended with an empty line.
func (e *events) endOfEvent() {
	of, message := e.event, e.event.data
	if e.event = (event{fields: of.fields[:0], data: of.data[:0]}); cap(of.fields)+cap(of.data) > chunkSize {
		e.event = event{} // do not keep the memory of a long event
	}
	if len(bytes.Trim(message, " \t\n")) > 0 {
		if of.kind != "" && of.kind != "message" { // clients read messages only in events of the type "message"
			e.dropped(of.kind)
			return
		}
		if message = e.seal(message); len(message) == 0 {
			return
		}
	}
	e.resumes = e.resumes || of.resumes
	if e.out = append(e.out, of.fields...); of.hasData {
		e.sendData(message)
	}
	e.out = append(e.out, '\n')
}

// sendData sends a message as the data of an event. A line end in it, which is white space in JSON, stays one.
func (e *events) sendData(message []byte) {
	if bytes.IndexByte(message, '\n') >= 0 {
		message = bytes.ReplaceAll(message, []byte("\n"), []byte("\ndata: "))
	}
	e.out = append(append(append(slices.Grow(e.out, len(message)+8), "data: "...), message...), '\n')
}
