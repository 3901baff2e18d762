package stdiocarrier

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// The maximum length in bytes of a line from each side, without its line end.
const (
	maxClientLine = 4 << 20
	maxServerLine = 16 << 20
)

// The reasons to refuse a line. After such an error the reader can go on with the next line.
var (
	errTooLong = errors.New("it is too long")
	errSplit   = errors.New("it has a carriage return inside")
)

// A lineReader splits a stream into messages, one per line. It keeps at most one of them in
// memory.
type lineReader struct {
	stream *bufio.Reader
	limit  int
}

func newLineReader(stream io.Reader, limit int) *lineReader {
	return &lineReader{bufio.NewReaderSize(stream, 1<<16), limit}
}

// readMessage skips blank lines, and returns one line without its line feed. The line is valid
// until readMessage is called again. If the error is errSplit, readMessage also returns the line.
// If the error is errTooLong, readMessage has read the whole line and discarded it.
func (r *lineReader) readMessage() ([]byte, error) {
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if message := bytes.Trim(line, " \t\r"); len(message) == 0 {
			continue
		} else if bytes.IndexByte(message, '\r') >= 0 {
			// In JSON a carriage return is white space. But some programs also end a
			// line there, for example Python programs with universal newlines. They would
			// read an object inside this message as a separate message.
			return line, errSplit
		}
		return line, nil
	}
}

func (r *lineReader) line() ([]byte, error) {
	line, err := r.stream.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		long := append([]byte(nil), line...)
		for err == bufio.ErrBufferFull {
			line, err = r.stream.ReadSlice('\n')
			if len(long) <= r.limit {
				long = append(long, line...)
			}
		}
		line = long
	}
	switch {
	case err == nil && line[len(line)-1] == '\n':
		line = line[:len(line)-1]
	case err != nil && len(line) == 0:
		return nil, err
	}
	// If the stream ends without a line feed, its last bytes are a line too. The next call then
	// returns the error with which the stream ended.
	if len(line) > r.limit {
		return nil, errTooLong
	}
	return line, nil
}

// A lineWriter writes whole lines. It is safe for concurrent use.
type lineWriter struct {
	mu     sync.Mutex
	stream *bufio.Writer
}

func newLineWriter(stream io.Writer) *lineWriter {
	return &lineWriter{stream: bufio.NewWriterSize(stream, 1<<16)}
}

// write writes a message and a line feed. After an error it writes nothing more, and returns
// the same error again.
func (w *lineWriter) write(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.Write(message)
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
