package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// The reasons to refuse a line. After such a line the next one is read.
var errSplit = errors.New("it has a carriage return inside")

// lineSplitter takes a stream in pieces, and calls line with each line that is not blank, without its line feed. It
// keeps at most one line in memory. A line that is too long is dropped whole.
type lineSplitter struct {
	limit int
	// line gets a line, and why it must be refused, if so. A line that is too long is nil. The line is valid until line
	// returns. If line returns an error, the stream ends.
	line  func(line []byte, refused error) error
	ended func() // is called when the stream has ended

	mu      sync.Mutex // servers write from several goroutines
	partial []byte     // the line that has not ended yet
	tooLong bool       // true if this line is too long
	err     error      // the error that ended the stream
}

// Write takes the next piece of the stream.
func (s *lineSplitter) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest, ended := p, true; ended && s.err == nil; {
		var piece []byte
		piece, rest, ended = bytes.Cut(rest, []byte("\n"))
		if s.tooLong = s.tooLong || len(s.partial)+len(piece) > s.limit; s.tooLong {
			s.partial = nil
		} else {
			s.partial = append(s.partial, piece...)
		}
		if ended {
			s.emit()
		}
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// Close takes the last line, if it has no line feed, and ends the stream.
func (s *lineSplitter) Close() error {
	s.mu.Lock()
	if len(s.partial) > 0 || s.tooLong {
		s.emit()
	}
	s.err = io.ErrClosedPipe
	s.mu.Unlock()
	s.ended()
	return nil
}

// emit takes the line that has ended.
func (s *lineSplitter) emit() {
	switch message := bytes.Trim(s.partial, " \t\r"); {
	case s.tooLong:
		s.err = s.line(nil, errTooLong)
	case len(message) == 0:
	case bytes.IndexByte(message, '\r') >= 0:
		// In JSON a carriage return is white space. But some programs also end a line there, for example Python
		// programs with universal newlines. They would read an object inside this message as a separate message.
		s.err = s.line(s.partial, errSplit)
	default:
		s.err = s.line(s.partial, nil)
	}
	if s.tooLong, s.partial = false, s.partial[:0]; cap(s.partial) > chunkSize {
		s.partial = nil
	}
}

// lineWriter writes whole lines. It is safe for concurrent use.
type lineWriter struct {
	mu     sync.Mutex
	stream io.Writer
	err    error // the first error; after it, nothing more is written
}

// write writes a message and a line feed. It writes nothing if the message is "".
func (w *lineWriter) write(message string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && message != "" {
		_, w.err = io.WriteString(w.stream, message+"\n")
	}
	return w.err
}
