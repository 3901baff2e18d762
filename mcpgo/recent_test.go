package mcpgo

import "testing"

func TestRecentHoldsTheLastAndIsBounded(t *testing.T) {
	var r recent[int, int]
	const n = 5*maxRecent + 7
	for i := range n {
		r.put(i, -i)
	}
	if held := len(r.newer) + len(r.older); held > 2*maxRecent {
		t.Errorf("%d values are held", held)
	}
	for i := n - maxRecent; i < n; i++ {
		if value, ok := r.take(i); !ok || value != -i {
			t.Fatalf("take(%d) = %d, %v", i, value, ok)
		}
		if _, ok := r.take(i); ok {
			t.Fatalf("%d was taken twice", i)
		}
	}
	if _, ok := r.take(0); ok {
		t.Error("the first is still there")
	}
}

func TestLookingForAValueDoesNotTakeIt(t *testing.T) {
	var r recent[string, int]
	r.put("a", 1)
	for range 2 {
		if !r.has("a") || r.has("b") {
			t.Error("has is wrong")
		}
	}
	if _, ok := r.take("a"); !ok || r.has("a") {
		t.Error("the value was taken before, or is still there")
	}
}
