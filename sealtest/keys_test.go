package sealtest_test

import (
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

func TestKeysOpenWhatTheSameTextSealed(t *testing.T) {
	request := tripseal.Request{Method: "tools/call", Target: "release", Principal: tripseal.User("alice")}
	boundary := func(texts ...string) *tripseal.Boundary {
		return sealtest.BoundaryWith(t, tripseal.Config{Keys: sealtest.Keys(t, texts...)})
	}
	sealer := boundary("one", "two")
	round, _ := sealer.Open(t.Context(), request, "")
	token, err := sealer.Seal(t.Context(), &round, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		texts []string
		opens bool
	}{
		{[]string{"one"}, true},
		{[]string{"two", "one"}, true},
		{[]string{"two"}, false},
		{[]string{"One"}, false},
	} {
		if _, err := boundary(c.texts...).Open(t.Context(), request, token); (err == nil) != c.opens {
			t.Errorf("%q: %v", c.texts, err)
		}
	}
}

// TestKeysStayTheSame holds in every release, so that the files of tests can contain tokens.
func TestKeysStayTheSame(t *testing.T) {
	ids := sealtest.Keys(t, "any text", "").IDs()
	if len(ids) != 2 || ids[0].String() != "d0ae0d78" || ids[1].String() != "4fc323f7" {
		t.Error(ids)
	}
}

func TestKeysWithoutATextEndTheTest(t *testing.T) {
	f := &fataled{TB: t}
	var group sync.WaitGroup
	group.Go(func() { sealtest.Keys(f) })
	group.Wait()
	if !f.ended {
		t.Error("it did not end")
	}
}
