package cli

import "testing"

func TestSizesAreReadAndShown(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "65536": 64 << 10, "64KiB": 64 << 10, "4MiB": 4 << 20, "1GiB": 1 << 30} {
		var s Size
		if err := s.Set(text); err != nil || int(s) != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
		var again Size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s is shown as %s", text, &s)
		}
	}
	for _, text := range []string{"", "0", "-1", "MiB", "4MB", "1.5MiB", "2GiB", "3000000000", "99999999999999999999", "0KiB"} {
		s := Size(7)
		if err := s.Set(text); err == nil || s != 7 {
			t.Errorf("%q is accepted as %d", text, s)
		}
	}
}
