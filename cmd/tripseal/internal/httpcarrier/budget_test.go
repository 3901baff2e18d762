package httpcarrier

import (
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func TestABudgetGivesNoMoreThanItHas(t *testing.T) {
	b := &budget{limit: 100}
	first, second := share{of: b}, share{of: b}
	if !first.resize(60) || second.resize(41) || !second.resize(40) || first.resize(61) {
		t.Fatalf("%+v", b.used.Load())
	}
	if first.held != 60 || second.held != 40 {
		t.Errorf("a share that could not grow has changed: %d, %d", first.held, second.held)
	}
	if !first.resize(10) || !second.resize(90) {
		t.Error("what was given back cannot be taken")
	}
	first.release()
	second.release()
	second.release()
	if b.used.Load() != 0 {
		t.Errorf("%d bytes are left", b.used.Load())
	}
	if b.take(1<<62) || !b.take(100) || b.take(1) {
		t.Error("the limit does not hold")
	}
}

func TestABudgetHoldsWithManyUsers(t *testing.T) {
	b := &budget{limit: 1000}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			s := share{of: b}
			for i := range 1000 {
				s.resize(i % 400)
				if used := b.used.Load(); used < 0 || used > b.limit {
					t.Errorf("%d bytes are used", used)
				}
			}
			s.release()
		})
	}
	wait.Wait()
	if b.used.Load() != 0 {
		t.Errorf("%d bytes are left", b.used.Load())
	}
}

func TestABodyIsReadWholeOrNotAtAll(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 10000, 10001, 20000} {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
			for _, expected := range []int64{-1, 0, int64(size) - 1, int64(size), int64(size) + 1, 1 << 40, math.MaxInt64} {
				text := strings.Repeat("x", size)
				s := share{of: &budget{limit: 1 << 20}}
				got, err := readWhole(reader(strings.NewReader(text)), 10000, expected, &s)
				if size <= 10000 && (err != nil || string(got) != text) || size > 10000 && (!errors.Is(err, errTooLong) || got != nil) {
					t.Errorf("%d bytes, %d expected: %d, %v", size, expected, len(got), err)
				}
				if err == nil && s.held != int64(cap(got)) {
					t.Errorf("%d bytes, %d expected: a buffer of %d and a share of %d", size, expected, cap(got), s.held)
				}
			}
		}
	}
	if _, err := readWhole(iotest.ErrReader(io.ErrUnexpectedEOF), 100, -1, &share{of: &budget{limit: 1 << 20}}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := readWhole(strings.NewReader(strings.Repeat("x", 9000)), 10000, -1, &share{of: &budget{limit: 8 << 10}}); !errors.Is(err, errNoBudget) {
		t.Error(err)
	}
}

func TestALongMessageThatIsOnlyAnnouncedHoldsLittle(t *testing.T) {
	s := share{of: &budget{limit: 1 << 30}}
	held := int64(-1)
	from := readerFunc(func([]byte) (int, error) {
		held = s.held
		return 0, io.EOF
	})
	if _, err := readWhole(from, 16<<20, 16<<20, &s); err != nil || held != mostExpected {
		t.Errorf("%d bytes are held, %v", held, err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
