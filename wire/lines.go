package wire

import (
	"bufio"
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
	line func(line []byte, refused error) error

	mu      sync.Mutex // servers write from several goroutines
	partial []byte     // the line that has not ended yet
	tooLong bool       // true if this line is too long
	err     error      // the error that ended the stream
}

// Write takes the next piece of the stream.
func (s *lineSplitter) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := p; s.err == nil && len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			s.add(rest)
			break
		}
		if len(s.partial) == 0 && !s.tooLong {
			s.emit(rest[:end], end > s.limit)
		} else {
			s.add(rest[:end])
			s.emitPartial()
		}
		rest = rest[end+1:]
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// close takes the last line, if it has no line feed, and ends the stream.
func (s *lineSplitter) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.partial) > 0 || s.tooLong {
		s.emitPartial()
	}
	s.err = io.ErrClosedPipe
}

func (s *lineSplitter) add(piece []byte) {
	if s.tooLong = s.tooLong || len(s.partial)+len(piece) > s.limit; s.tooLong {
		s.partial = nil
		return
	}
	s.partial = append(s.partial, piece...)
}

func (s *lineSplitter) emitPartial() {
	line, tooLong := s.partial, s.tooLong
	s.partial, s.tooLong = s.partial[:0], false
	if s.emit(line, tooLong); cap(s.partial) > chunkSize {
		s.partial = nil
	}
}

func (s *lineSplitter) emit(line []byte, tooLong bool) {
	switch message := bytes.Trim(line, " \t\r"); {
	case tooLong:
		s.err = s.line(nil, errTooLong)
	case len(message) == 0:
	case bytes.IndexByte(message, '\r') >= 0:
		// In JSON a carriage return is white space. But some programs also end a line there, for example Python
		// programs with universal newlines. They would read an object inside this message as a separate message.
		s.err = s.line(line, errSplit)
	default:
		s.err = s.line(line, nil)
	}
}

// lineWriter writes whole lines. It is safe for concurrent use.
type lineWriter struct {
	mu     sync.Mutex
	stream *bufio.Writer
}

func newLineWriter(stream io.Writer) *lineWriter {
	return &lineWriter{stream: bufio.NewWriterSize(stream, 1<<16)}
}

// write writes a message and a line feed. After an error it writes nothing more, and returns the same error again.
func (w *lineWriter) write(message string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.WriteString(message)
	w.stream.WriteByte('\n')
	return w.stream.Flush() // the bufio.Writer keeps the first error and returns it here
}

// close makes all later writes fail. When it returns, no write is under way.
func (w *lineWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.Reset(closed{})
}

// closed is a stream to which nothing can be written.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
