package strictjson

import (
	"reflect"
	"strings"
	"testing"
)

// readAll reads the members of an object. It also returns whether the text was an object and
// nothing else.
func readAll(m *Members) (all []Member, whole bool) {
	for {
		member, ok := m.Next()
		if !ok {
			return all, m.Whole()
		}
		all = append(all, member)
	}
}

// FuzzObject reads inner objects with the callback Members.Object, sometimes only in part. The
// function ReadMembers must find the same members in the text of each inner object.
func FuzzObject(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, limit int) {
		plain := ReadMembers(text)
		want, wantWhole := readAll(&plain)

		var found [][]Member
		inPlace := ReadMembers(text)
		inPlace.Object = func(name string, inner *Members) {
			var list []Member
			for limit <= 0 || len(list) < limit {
				member, ok := inner.Next()
				if !ok {
					break
				}
				list = append(list, member)
			}
			found = append(found, list)
		}
		got, gotWhole := readAll(&inPlace)
		if !reflect.DeepEqual(got, want) || gotWhole != wantWhole {
			t.Fatalf("%q has the members %v (%t), want %v (%t)", text, got, gotWhole, want, wantWhole)
		}
		for _, member := range want {
			if member.Raw[0] != '{' {
				continue
			}
			alone := ReadMembers(member.Raw)
			all, whole := readAll(&alone)
			if !whole {
				t.Fatalf("%q is no object by itself", member.Raw)
			}
			for i := range all {
				all[i].At, all[i].From = all[i].At+member.From, all[i].From+member.From
			}
			if limit > 0 {
				all = all[:min(limit, len(all))]
			}
			if !reflect.DeepEqual(found[0], all) {
				t.Fatalf("%q holds %v, want %v", member.Raw, found[0], all)
			}
			found = found[1:]
		}
	})
}

func TestObjectsInPlaceNestNoDeeperThanOthers(t *testing.T) {
	for _, levels := range []int{MaxLevels, MaxLevels + 1} {
		members := ReadMembers(strings.Repeat(`{"":`, levels) + "0" + strings.Repeat("}", levels))
		var read func(string, *Members)
		read = func(_ string, inner *Members) {
			inner.Object = read
			readAll(inner)
		}
		members.Object = read
		if _, whole := readAll(&members); whole != (levels == MaxLevels) {
			t.Errorf("%d levels: %t", levels, whole)
		}
	}
}

func TestNothingIsReadAfterTheEnd(t *testing.T) {
	members := ReadMembers(`{"a":1}`)
	readAll(&members)
	if more, whole := readAll(&members); len(more) > 0 || !whole {
		t.Errorf("%v, %t", more, whole)
	}
}
