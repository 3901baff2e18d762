package httpcarrier

import (
	"errors"
	"io"
	"sync/atomic"
)

// budget limits how many bytes the messages of all requests together use in memory. If a
// request needs more than is left, it fails and does not wait, because two requests that wait
// for each other's bytes would wait for ever.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take takes n bytes of the budget and returns true. If fewer are left, it takes none and
// returns false.
func (b *budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if n > b.limit-used {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// share is the part of a budget that one request or one answer holds. It is not safe for
// concurrent use.
type share struct {
	of   *budget
	held int64
}

// resize changes the size of the share to n bytes. If the budget has too few bytes left, it
// changes nothing and returns false.
func (s *share) resize(n int) bool {
	more := int64(n) - s.held
	if more > 0 && !s.of.take(more) {
		return false
	}
	if more < 0 {
		s.of.used.Add(more)
	}
	s.held = int64(n)
	return true
}

func (s *share) release() { s.resize(0) }

// mostExpected is how many bytes are allocated, at most, before a message arrives.
const mostExpected = 128 << 10

var (
	errTooLong  = errors.New("the message is too long")
	errNoBudget = errors.New("too many bytes are in flight")
)

// readWhole reads a message up to its end. If the message has more bytes than the limit, readWhole
// returns errTooLong. The parameter expected is the likely length, or -1 if it is not known. The
// share s grows with the bytes that arrive. So a peer uses little of the budget if it announces a
// long message but does not send the message.
func readWhole(from io.Reader, limit int, expected int64, s *share) ([]byte, error) {
	first := int(min(max(expected+1, 4<<10), mostExpected, int64(limit)+1)) // the extra byte shows whether the message goes on
	if !s.resize(first) {
		return nil, errNoBudget
	}
	buffer := make([]byte, 0, first)
	for {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case len(buffer) > limit:
			return nil, errTooLong
		case err == io.EOF:
			return buffer, nil
		case err != nil:
			return nil, err
		}
		if len(buffer) == cap(buffer) {
			size := min(2*cap(buffer), limit+1)
			if !s.resize(size) {
				return nil, errNoBudget
			}
			grown := make([]byte, len(buffer), size)
			copy(grown, buffer)
			buffer = grown
		}
	}
}
