package wire

import (
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestABudgetGivesNoMoreThanItHas(t *testing.T) {
	b := newBudget(100)
	first, second := share{of: b}, share{of: b}
	if !first.resize(60) || second.resize(41) || !second.resize(40) || first.resize(61) {
		t.Fatal(b.used)
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
	if b.used != 0 {
		t.Errorf("%d bytes are left", b.used)
	}
	if first.resize(1<<30) || !first.resize(100) || second.resize(1) {
		t.Error("the limit does not hold")
	}
}

func TestABudgetHoldsWithManyUsers(t *testing.T) {
	b := newBudget(1000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := share{of: b}
			for i := range 1000 {
				if i%100 == 0 {
					s.wait(func() {})
				}
				s.resize(i % 400)
				s.progress(1)
				if i%100 == 50 {
					s.resume()
				}
				b.mu.Lock()
				if b.used < 0 || b.used > b.limit {
					t.Errorf("%d bytes are used", b.used)
				}
				b.mu.Unlock()
			}
			s.resume()
			s.release()
		})
	}
	all.Wait()
	if b.used != 0 || len(b.waiting) != 0 {
		t.Errorf("%d bytes and %d shares are left", b.used, len(b.waiting))
	}
}

// client is a client that a test's door waits for. Its connection ends as soon as it is cut.
type client struct {
	share
	ends int
}

// clients returns clients that hold so many bytes each, of a budget that has no more. A door waits for each of them.
func clients(held ...int) (*budget, []*client) {
	b := newBudget(0)
	var list []*client
	for _, n := range held {
		c := &client{share: share{of: b}}
		b.limit += int64(n)
		c.resize(n)
		c.wait(func() {
			c.ends++
			go func() {
				c.resume()
				c.release()
			}()
		})
		list = append(list, c)
	}
	return b, list
}

func TestTheSlowestClientsMakeRoomAndNoMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, list := clients(100, 100, 100, 100)
		for range 5 { // the third is the slowest, then the first
			for _, i := range []int{2, 0, 3, 1} {
				list[i].progress(step)
				time.Sleep(patience)
			}
		}
		for i, want := range []string{"0010", "1010", "1011"} {
			s := share{of: b}
			if !s.resize(90 + i) {
				t.Fatalf("the bytes of the slowest client were not to be had")
			}
			synctest.Wait()
			got := ""
			for _, c := range list {
				got += string('0' + byte(c.ends))
			}
			if got != want {
				t.Errorf("cut off are %s, not %s", got, want)
			}
		}
	})
}

// A client that sent much at first and then little must not count as fast for ever.
func TestAClientIsAsFastAsItWasLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, list := clients(100, 100)
		list[0].progress(1 << 20)
		for range 4 {
			time.Sleep(patience)
			list[1].progress(step)
			time.Sleep(time.Nanosecond)
			list[0].progress(1) // a single byte now and then does not count
		}
		if s := (share{of: b}); !s.resize(50) || list[0].ends != 1 || list[1].ends != 0 {
			t.Errorf("cut off: %d, %d", list[0].ends, list[1].ends)
		}
		synctest.Wait()
	})
}

func TestNobodyIsCutOffBeforeTheirTimeNorInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, list := clients(100, 50)
		start, s := time.Now(), share{of: b}
		if !s.resize(20) || list[0].ends+list[1].ends != 1 { // it waits until a client counts as slow
			t.Error("the bytes of a client that became slow were not to be had")
		}
		if waited := time.Since(start); waited <= patience || waited > reclaiming {
			t.Errorf("a client was cut off after %v", waited)
		}
		synctest.Wait()

		b, list = clients(100, 50)
		fixed := share{of: b}
		b.limit += 200
		fixed.resize(200) // its door waits for no client
		time.Sleep(2 * patience)
		start, s = time.Now(), share{of: b}
		if s.resize(151) || list[0].ends+list[1].ends != 0 || time.Since(start) != 0 {
			t.Error("clients were cut off, though their bytes are too few")
		}
		if s.resize(int(b.limit) + 1) {
			t.Error("more than the limit")
		}
		list[0].resume()
		if s.resize(60) || list[0].ends != 0 || list[1].ends != 0 {
			t.Error("a client was cut off that nobody waits for")
		}
		empty := &client{share: share{of: b}}
		empty.wait(func() { empty.ends++ })
		empty.last = time.Time{} // the slowest
		time.Sleep(2 * patience)
		if !s.resize(40) || empty.ends != 0 || list[1].ends != 1 {
			t.Error("a client that holds nothing was cut off")
		}
		synctest.Wait()
	})
}

func TestAClientThatIsTheSlowestItselfIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, list := clients(100, 100, 100)
		for range 3 {
			list[0].progress(1)
			list[1].progress(step)
			list[2].progress(step)
			time.Sleep(patience)
		}
		if list[0].resize(250) || list[1].ends+list[2].ends != 0 {
			t.Error("a slow client got the bytes of a faster one")
		}
		if !list[1].resize(150) || list[0].ends != 1 {
			t.Error("a fast client did not get the bytes of a slower one")
		}
		synctest.Wait()
	})
}

// A share may wait for bytes when it is cut off itself. Then it gives up at once, because others wait for what it
// holds.
func TestAShareThatIsCutOffDoesNotWaitForBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(200)
		stuck, fast, next := share{of: b}, share{of: b}, share{of: b}
		for _, s := range []*share{&stuck, &fast} {
			s.resize(100)
			s.wait(func() {}) // stuck never gives anything back, though it is cut off
		}
		time.Sleep(2 * patience)
		fast.progress(step)
		gone := make(chan time.Duration)
		go func() {
			start := time.Now()
			if fast.resize(150) {
				t.Error("bytes came from nowhere")
			}
			gone <- time.Since(start)
			fast.resume()
			fast.release()
		}()
		synctest.Wait()
		if stuck.progress(0) || !fast.progress(0) {
			t.Error("the slower client was not cut off")
		}
		var last sync.WaitGroup
		last.Go(func() { next.resize(150) })
		if waited := <-gone; waited != 0 || fast.progress(0) {
			t.Errorf("it waited %v", waited)
		}
		last.Wait()
	})
}

func TestBytesThatDoNotComeBackInTimeAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, list := clients(100)
		list[0].wait(func() {}) // it gives nothing back
		time.Sleep(2 * patience)
		start := time.Now()
		if s := (share{of: b}); s.resize(1) || time.Since(start) > reclaiming+patience {
			t.Errorf("after %v", time.Since(start))
		}
	})
}

// read reads a text with collected.readWhole.
func read(from io.Reader, limit int, expected int64, s *share) (collected, error) {
	m := collected{limit: limit, share: s}
	return m, m.readWhole(from, expected)
}

func TestABodyIsReadWholeOrNotAtAll(t *testing.T) {
	same := func(r io.Reader) io.Reader { return r }
	for _, size := range []int{0, 1, 4095, 4096, 4097, 10000, 10001, 100000} {
		for _, reader := range []func(io.Reader) io.Reader{same, iotest.HalfReader, iotest.DataErrReader} {
			for _, expected := range []int64{-1, 0, int64(size) - 1, int64(size), int64(size) + 1, 1 << 40, math.MaxInt64} {
				text := strings.Repeat("x", size)
				s := share{of: newBudget(1 << 20)}
				m, err := read(reader(strings.NewReader(text)), 10000, expected, &s)
				if size <= 10000 && (err != nil || string(m.text) != text) || size > 10000 && !errors.Is(err, errTooLong) {
					t.Errorf("%d bytes, %d expected: %d, %v", size, expected, len(m.text), err)
				}
				if len(m.text) > 10001 || s.held < 2*int64(len(m.text)) || s.held > 4*10000 {
					t.Errorf("%d bytes, %d expected: %d bytes are held", size, expected, s.held)
				}
			}
		}
	}
	s := share{of: newBudget(1 << 20)}
	if _, err := read(iotest.ErrReader(io.ErrUnexpectedEOF), 100, -1, &s); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	s = share{of: newBudget(8 << 10)}
	if _, err := read(strings.NewReader(strings.Repeat("x", 9000)), 10000, -1, &s); !errors.Is(err, errNoBudget) {
		t.Error(err)
	}
}

func TestALongMessageThatIsOnlyAnnouncedHoldsLittle(t *testing.T) {
	s := share{of: newBudget(1 << 30)}
	if _, err := read(strings.NewReader(""), 16<<20, 16<<20, &s); err != nil || s.held != 2*mostExpected+2 {
		t.Errorf("%d bytes are held, %v", s.held, err)
	}
}
