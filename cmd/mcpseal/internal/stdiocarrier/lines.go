package stdiocarrier

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// The longest line of each side, without its line end.
const (
	maxClientLine = 4 << 20
	maxServerLine = 16 << 20
)

// The lines that are refused. The reader goes on with the line after it.
var (
	errTooLong = errors.New("it is too long")
	errSplit   = errors.New("it has a carriage return inside")
)

// A lineReader cuts a stream into messages. It keeps at most one of them in memory.
type lineReader struct {
	stream *bufio.Reader
	limit  int
}

func newLineReader(stream io.Reader, limit int) *lineReader {
	return &lineReader{bufio.NewReaderSize(stream, 1<<16), limit}
}

// next returns the next line that is not blank, without its line feed. The line is valid
// until the next call. With errTooLong there is no line: it was read to its end and not kept.
func (r *lineReader) next() ([]byte, error) {
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if message := bytes.Trim(line, " \t\r"); len(message) == 0 {
			continue
		} else if bytes.IndexByte(message, '\r') >= 0 {
			// To JSON it is white space. To readers with universal line ends, such as Python's,
			// it ends a line: an object inside the message would be a message of its own.
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
	// What comes before the end of the stream is a line too; the next call returns the error.
	if len(line) > r.limit {
		return nil, errTooLong
	}
	return line, nil
}

// A lineWriter writes whole lines, one after the other.
type lineWriter struct {
	mu     sync.Mutex
	stream *bufio.Writer
}

func newLineWriter(stream io.Writer) *lineWriter {
	return &lineWriter{stream: bufio.NewWriterSize(stream, 1<<16)}
}

// write writes a message and its line end. After an error it writes nothing any more.
func (w *lineWriter) write(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.Write(message)
	w.stream.WriteByte('\n')
	return w.stream.Flush() // it keeps the first error
}

// close ends the writer. When it returns, no write is under way and none will follow.
func (w *lineWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.Reset(closed{})
}

// closed is a stream that is closed.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
