package tripseal_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// mapStore is the simplest store that works.
type mapStore struct {
	mu   sync.Mutex
	uses []tripseal.Use
}

func (s *mapStore) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.uses {
		if other.Flow == use.Flow && other.Round == use.Round {
			return false, nil
		}
	}
	s.uses = append(s.uses, use)
	return true, nil
}

func TestMapStorePassesTheSuite(t *testing.T) {
	t.Parallel() // the suite waits for tokens to expire
	sealtest.TestReplayStore(t, &mapStore{})
}

func TestATokenWorksOnce(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{Replay: &mapStore{}})
	token := s.first(t, deploy(), step)
	round := s.accept(t, deploy(), token)
	s.reject(t, deploy(), token, tripseal.ReasonReplayed)
	state := step
	next, err := s.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	s.accept(t, deploy(), next)
	s.reject(t, deploy(), next, tripseal.ReasonReplayed)
	s.reject(t, deploy(), token, tripseal.ReasonReplayed)
}

func TestSingleUseCanBeLimitedToTools(t *testing.T) {
	s := newService(t, tripseal.Config{Replay: &mapStore{}, ReplayTools: []string{"deploy"}})
	token := s.first(t, deploy(), step)
	s.accept(t, deploy(), token)
	s.reject(t, deploy(), token, tripseal.ReasonReplayed)
	for _, other := range []tripseal.Request{
		{Method: "tools/call", Target: "list"},
		{Method: "prompts/get", Target: "deploy"}, // a prompt of the same name
	} {
		token := s.first(t, other, step)
		s.accept(t, other, token)
		s.accept(t, other, token)
	}
}

func TestTheStoreIsAskedLast(t *testing.T) {
	ring, store := newRing(t, newKey(t)), &mapStore{}
	var ahead string
	synctest.Test(t, func(t *testing.T) { // a replica whose clock is ahead
		time.Sleep(time.Hour)
		ahead = newService(t, tripseal.Config{Keys: ring}).first(t, deploy(), step)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{Keys: ring, Replay: store})
		free := newService(t, tripseal.Config{Keys: ring}) // has no store, so it opens tokens without spending them
		stricter := func(config tripseal.Config) service {
			config.Keys, config.Replay = ring, store
			return newService(t, config)
		}
		s.reject(t, deploy(), ahead, tripseal.ReasonFromTheFuture)
		token := s.first(t, deploy(), step)
		other := deploy()
		other.Target = "destroy"
		s.reject(t, other, token, tripseal.ReasonRequest)
		other = deploy()
		other.Principal = tripseal.User("hush-mallory")
		s.reject(t, other, token, tripseal.ReasonUser)
		other = deploy()
		other.Arguments = []byte(`{"region":"hush-us","replicas":3}`)
		s.reject(t, other, token, tripseal.ReasonArguments)
		stricter(tripseal.Config{Audience: "other.example.com"}).reject(t, deploy(), token, tripseal.ReasonAudience)
		stricter(tripseal.Config{MaxState: len(step) - 1}).reject(t, deploy(), token, tripseal.ReasonTooLarge)

		round := free.accept(t, deploy(), token)
		state := step
		second, err := free.Seal(context.Background(), &round, &state)
		if err != nil {
			t.Fatal(err)
		}
		stricter(tripseal.Config{MaxRounds: 1}).reject(t, deploy(), second, tripseal.ReasonTooManyRounds)
		time.Sleep(2 * time.Minute)
		stricter(tripseal.Config{MaxFlow: time.Minute}).reject(t, deploy(), second, tripseal.ReasonFlowExpired)
		time.Sleep(8 * time.Minute)
		s.reject(t, deploy(), token, tripseal.ReasonExpired)
		if len(store.uses) != 0 {
			t.Error("a rejected token was spent")
		}
	})
}

func TestAStoreLearnsWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mapStore{}
		s := newService(t, tripseal.Config{Replay: store})
		start := time.Now()
		mallory := deploy()
		mallory.Principal = tripseal.User("hush-mallory")
		nobody := deploy()
		nobody.Principal = nil
		for _, request := range []tripseal.Request{deploy(), deploy(), mallory, nobody} {
			token := s.first(t, request, step)
			time.Sleep(time.Minute) // the user takes a minute to answer
			s.accept(t, request, token)
		}
		elsewhere := newService(t, tripseal.Config{Replay: store})
		elsewhere.accept(t, deploy(), elsewhere.first(t, deploy(), step))
		a, b, other, none := store.uses[0], store.uses[1], store.uses[2], store.uses[3]
		if a.Owner == store.uses[4].Owner {
			t.Error("a user can be followed from one boundary to another")
		}
		if a.Owner != b.Owner || a.Owner == other.Owner || a.Owner == [16]byte{} || none.Owner != [16]byte{} {
			t.Error("owners do not tell users apart")
		}
		if a.Flow == b.Flow || a.Round != 1 || !a.Issued.Equal(start) || !a.Until.Equal(start.Add(12*time.Minute)) {
			t.Errorf("use %+v", a)
		}
	})
}

func TestOneOfManyOpensWins(t *testing.T) {
	s := newService(t, tripseal.Config{Replay: &mapStore{}})
	token := s.first(t, deploy(), step)
	var wins, group = make(chan bool, 32), sync.WaitGroup{}
	for range 32 {
		group.Go(func() {
			_, err := s.Open(context.Background(), deploy(), token)
			wins <- err == nil
		})
	}
	group.Wait()
	close(wins)
	n := 0
	for won := range wins {
		if won {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d opens of one token succeeded", n)
	}
}

func TestACancelledRequestIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{Replay: storeFunc(func(ctx context.Context, _ tripseal.Use) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	})})
	token := s.first(t, deploy(), step)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	round, err := s.Open(ctx, deploy(), token)
	s.checkRejection(t, round, err, tripseal.ReasonCanceled)
	if logged := s.book.last(t); logged["level"] != "WARN" || logged["cause"] != "context canceled" {
		t.Errorf("logged at %v with cause %v", logged["level"], logged["cause"])
	}
}

// TestACallerWhoGaveUpIsNoFailureOfAPart calls parts with a canceled context. If a part returns the
// error of that context, the reason is ReasonCanceled, not a failure of the part. But a part has
// failed if it panics, or if it is slower than a deadline of the service.
func TestACallerWhoGaveUpIsNoFailureOfAPart(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	ends := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		ctx       context.Context
		store     func(context.Context, tripseal.Use) (bool, error)
		principal tripseal.Principal
		want      tripseal.Reason
	}{
		"store":             {gone, func(ctx context.Context, _ tripseal.Use) (bool, error) { return false, ends(ctx) }, nil, tripseal.ReasonCanceled},
		"principal":         {gone, nil, func(ctx context.Context) (string, error) { return "", ends(ctx) }, tripseal.ReasonCanceled},
		"a store, too slow": {late, func(ctx context.Context, _ tripseal.Use) (bool, error) { return false, ends(ctx) }, nil, tripseal.ReasonStoreFailed},
		"a panic":           {gone, nil, func(context.Context) (string, error) { panic("x") }, tripseal.ReasonPrincipalFailed},
		"a used token":      {gone, func(context.Context, tripseal.Use) (bool, error) { return false, tripseal.ReasonReplayed }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := tripseal.Config{}
			if c.store != nil {
				config.Replay = storeFunc(c.store)
			}
			s := newService(t, config)
			request := deploy()
			token := s.first(t, request, step)
			if c.principal != nil {
				request.Principal = c.principal
			}
			round, err := s.Open(c.ctx, request, token)
			if c.want == "" { // the reason may be ReasonReplayed or ReasonCanceled; Open logs both as warnings
				if logged := s.book.last(t); err == nil || logged["level"] != "WARN" {
					t.Errorf("%v, logged at %v", err, logged["level"])
				}
				return
			}
			s.checkRejection(t, round, err, c.want)
			if c.principal == nil {
				return
			}
			first, err := s.Open(c.ctx, request, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Seal(c.ctx, &first, nil)
			var failed *tripseal.SealError
			if !errors.As(err, &failed) || failed.Reason != c.want {
				t.Errorf("sealing: %v", err)
			}
			if level := s.book.last(t)["level"]; (level == "WARN") != (c.want == tripseal.ReasonCanceled) {
				t.Errorf("sealing: logged at %v", level)
			}
		})
	}
}

// TestAStoreThatIsSilentHoldsABoundedNumberOfGoroutines uses a store that ignores its context, and
// answers only after all callers have given up. Until then only a limited number of goroutines
// wait for the store, and further tokens are rejected at once.
func TestAStoreThatIsSilentHoldsABoundedNumberOfGoroutines(t *testing.T) {
	const most = 2000
	synctest.Test(t, func(t *testing.T) {
		var waiting, asked atomic.Int32
		answer := make(chan struct{})
		s := newService(t, tripseal.Config{Replay: storeFunc(func(context.Context, tripseal.Use) (bool, error) {
			asked.Add(1)
			waiting.Add(1)
			defer waiting.Add(-1)
			<-answer
			return true, nil
		})})
		token := s.first(t, deploy(), step)
		for range most {
			go s.Open(context.Background(), deploy(), token)
		}
		synctest.Wait()
		for i := range 3 {
			if n := waiting.Load(); n != most {
				t.Fatalf("%d tokens wait, want %d", n, most)
			}
			start := time.Now()
			round, err := s.Open(context.Background(), deploy(), token)
			s.checkRejection(t, round, err, tripseal.ReasonStoreFailed)
			if cause := s.book.last(t)["cause"]; cause != "too many tokens are waiting for the store" {
				t.Errorf("the log says %v", cause)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("turn %d: the rejection took %v", i, took)
			}
			time.Sleep(time.Minute) // by now all callers have given up, but the store has not answered
		}
		close(answer) // now the store answers, so all calls of Spend return and their goroutines end
		synctest.Wait()
		s.accept(t, deploy(), token)
		if n := asked.Load(); n != most+1 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// promptStore is a store with the method NonBlocking. Each test chooses what that method returns.
type promptStore struct {
	spend func(context.Context, tripseal.Use) (bool, error)
	says  func(*promptStore) tripseal.ReplayStore
}

func (s *promptStore) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	return s.spend(ctx, use)
}
func (s *promptStore) NonBlocking() tripseal.ReplayStore { return s.says(s) }

func itself(s *promptStore) tripseal.ReplayStore { return s }

// TestAStoreThatCannotBlockIsCalledDirectly checks that the store gets the caller's own context. A
// store that may block gets another context, which has a timeout.
func TestAStoreThatCannotBlockIsCalledDirectly(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got context.Context
	s := newService(t, tripseal.Config{Replay: &promptStore{says: itself, spend: func(ctx context.Context, _ tripseal.Use) (bool, error) {
		got = ctx
		return true, nil
	}}})
	if _, err := s.Open(ctx, deploy(), s.first(t, deploy(), step)); err != nil {
		t.Fatal(err)
	}
	if got != ctx {
		t.Error("the store was called with another context")
	}
}

func TestAStoreThatIsCalledDirectlyCanFail(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		spend func(context.Context, tripseal.Use) (bool, error)
		want  tripseal.Reason
	}{
		"a used token":  {context.Background(), func(context.Context, tripseal.Use) (bool, error) { return false, nil }, tripseal.ReasonReplayed},
		"an error":      {context.Background(), func(context.Context, tripseal.Use) (bool, error) { return true, errors.New("hush") }, tripseal.ReasonStoreFailed},
		"a panic":       {context.Background(), func(context.Context, tripseal.Use) (bool, error) { panic("hush") }, tripseal.ReasonStoreFailed},
		"a nil panic":   {context.Background(), func(context.Context, tripseal.Use) (bool, error) { panic(nil) }, tripseal.ReasonStoreFailed},
		"a lost caller": {gone, func(ctx context.Context, _ tripseal.Use) (bool, error) { return false, ctx.Err() }, tripseal.ReasonCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, tripseal.Config{Replay: &promptStore{spend: c.spend, says: itself}})
			round, err := s.Open(c.ctx, deploy(), s.first(t, deploy(), step))
			s.checkRejection(t, round, err, c.want)
		})
	}
}

type (
	embeddingStore struct {
		*promptStore
		delay time.Duration
	}
	incomparableStore struct {
		storeFunc
		_ []int
	}
)

func (s embeddingStore) Spend(context.Context, tripseal.Use) (bool, error) {
	time.Sleep(s.delay)
	return true, nil
}
func (s incomparableStore) NonBlocking() tripseal.ReplayStore { return s }

// TestAStoreThatMayBlockKeepsItsTimeout uses slow stores. Each of them counts as a store that can
// block, even if it has the method NonBlocking.
func TestAStoreThatMayBlockKeepsItsTimeout(t *testing.T) {
	slow := func(context.Context, tripseal.Use) (bool, error) { time.Sleep(time.Hour); return true, nil }
	other := &promptStore{spend: slow, says: itself}
	for name, store := range map[string]tripseal.ReplayStore{
		"says nothing":        storeFunc(slow),
		"says no":             &promptStore{slow, func(*promptStore) tripseal.ReplayStore { return nil }},
		"speaks for another":  &promptStore{slow, func(*promptStore) tripseal.ReplayStore { return other }},
		"panics":              &promptStore{slow, func(*promptStore) tripseal.ReplayStore { panic("hush") }},
		"embeds such a store": embeddingStore{other, time.Hour},
		"the same, a pointer": &embeddingStore{other, time.Hour},
		"cannot be compared":  incomparableStore{storeFunc: slow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, tripseal.Config{Replay: store})
				token, start := s.first(t, deploy(), step), time.Now()
				round, err := s.Open(context.Background(), deploy(), token)
				s.checkRejection(t, round, err, tripseal.ReasonStoreFailed)
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("the rejection took %v", took)
				}
				time.Sleep(time.Hour) // by now Spend has returned, and the goroutine that called it has ended
			})
		})
	}
}

func TestANilStoreThatCannotBlockIsAFailure(t *testing.T) {
	var none *promptStore
	s := newService(t, tripseal.Config{Replay: none})
	s.reject(t, deploy(), s.first(t, deploy(), step), tripseal.ReasonStoreFailed)
}
