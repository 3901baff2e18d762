package mcpseal_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/sealtest"
)

// mapStore is the simplest store that works.
type mapStore struct {
	mu   sync.Mutex
	uses []mcpseal.Use
}

func (s *mapStore) Claim(ctx context.Context, use mcpseal.Use) (bool, error) {
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

func TestMapStorePassesTheSuite(t *testing.T) { sealtest.TestReplayStore(t, &mapStore{}) }

func TestATokenWorksOnce(t *testing.T) {
	ctx := context.Background()
	s := newService(t, mcpseal.Config{Replay: &mapStore{}})
	token := s.first(t, deploy(), step)
	round := s.accept(t, deploy(), token)
	s.reject(t, deploy(), token, mcpseal.ReasonReplayed)
	state := step
	next, err := s.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	s.accept(t, deploy(), next)
	s.reject(t, deploy(), next, mcpseal.ReasonReplayed)
	s.reject(t, deploy(), token, mcpseal.ReasonReplayed)
}

func TestSingleUseCanBeLimitedToTools(t *testing.T) {
	s := newService(t, mcpseal.Config{Replay: &mapStore{}, ReplayTools: []string{"deploy"}})
	token := s.first(t, deploy(), step)
	s.accept(t, deploy(), token)
	s.reject(t, deploy(), token, mcpseal.ReasonReplayed)
	for _, other := range []mcpseal.Request{
		{Method: "tools/call", Target: "list"},
		{Method: "prompts/get", Target: "deploy"}, // a prompt of the same name
	} {
		token := s.first(t, other, step)
		s.accept(t, other, token)
		s.accept(t, other, token)
	}
}

func TestTheStoreIsAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mapStore{}
		s := newService(t, mcpseal.Config{Replay: store})
		token := s.first(t, deploy(), step)
		other := deploy()
		other.Target = "destroy"
		s.reject(t, other, token, mcpseal.ReasonRequest)
		other = deploy()
		other.Principal = mcpseal.User("hush-mallory")
		s.reject(t, other, token, mcpseal.ReasonPrincipal)
		old := s.first(t, deploy(), step)
		time.Sleep(10 * time.Minute)
		s.reject(t, deploy(), old, mcpseal.ReasonExpired)
		if len(store.uses) != 0 {
			t.Error("a rejected token was spent")
		}
	})
}

func TestAStoreLearnsWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mapStore{}
		s := newService(t, mcpseal.Config{Replay: store})
		start := time.Now()
		mallory := deploy()
		mallory.Principal = mcpseal.User("hush-mallory")
		nobody := deploy()
		nobody.Principal = nil
		for _, request := range []mcpseal.Request{deploy(), deploy(), mallory, nobody} {
			s.accept(t, request, s.first(t, request, step))
		}
		a, b, other, none := store.uses[0], store.uses[1], store.uses[2], store.uses[3]
		if a.Owner != b.Owner || a.Owner == other.Owner || a.Owner == [16]byte{} || none.Owner != [16]byte{} {
			t.Error("owners do not tell users apart")
		}
		if a.Flow == b.Flow || a.Round != 1 || !a.Issued.Equal(start) || !a.Until.Equal(start.Add(12*time.Minute)) {
			t.Errorf("use %+v", a)
		}
	})
}

func TestOneOfManyOpensWins(t *testing.T) {
	s := newService(t, mcpseal.Config{Replay: &mapStore{}})
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
	s := newService(t, mcpseal.Config{Replay: storeFunc(func(ctx context.Context, _ mcpseal.Use) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	})})
	token := s.first(t, deploy(), step)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	round, err := s.Open(ctx, deploy(), token)
	s.checkRejection(t, round, err, mcpseal.ReasonStoreFailed)
}
