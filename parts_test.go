package tripseal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

// TestNothingThatAPartSaysIsRepeated checks that Guard does not repeat the text of an error or a
// panic. The error of Guard tells whether the part panicked, and errors.Is still finds the original.
func TestNothingThatAPartSaysIsRepeated(t *testing.T) {
	secret := errors.New("hush")
	for name, part := range map[string]func() error{
		"an error":             func() error { return fmt.Errorf("hush: %w", secret) },
		"a panic":              func() error { panic("hush") },
		"a panic of an error":  func() error { panic(secret) },
		"a panic in its error": func() error { return loudError{} },
	} {
		err := tripseal.Guard(part)
		var failed *tripseal.PartError
		if !errors.As(err, &failed) || strings.Contains(fmt.Sprintf("%v %+v %#v %s", err, err, err, failed.Stack()), "hush") {
			t.Errorf("%s: %v", name, err)
		}
		if panics := strings.Contains(name, "panic"); (failed.Stack() != "") != panics {
			t.Errorf("%s: the stack is %q", name, failed.Stack())
		}
	}
	if err := tripseal.Guard(func() error { return secret }); !errors.Is(err, secret) {
		t.Error("the original is lost")
	}
	if err := tripseal.Guard(func() error { return nil }); err != nil {
		t.Errorf("a part that works: %v", err)
	}
	plain := tripseal.PlainError("the disk is full")
	if err := tripseal.Guard(func() error { return fmt.Errorf("hush: %w", plain) }); err.Error() != "the disk is full" {
		t.Errorf("a plain error: %v", err)
	}
}

// loudError is an error whose methods panic.
type loudError struct{}

func (loudError) Error() string { panic("hush") }
func (loudError) Unwrap() error { panic("hush") }

func TestWhoIsCallingIsToldOrTheCheckFails(t *testing.T) {
	for name, c := range map[string]struct {
		principal tripseal.Principal
		user      string
		ok        bool
	}{
		"nobody":      {nil, "", true},
		"alice":       {tripseal.User("alice"), "alice", true},
		"no name":     {tripseal.User(""), "", false},
		"an error":    {func(context.Context) (string, error) { return "alice", errors.New("hush") }, "", false},
		"a panic":     {func(context.Context) (string, error) { panic("hush") }, "", false},
		"a long name": {tripseal.User(strings.Repeat("x", 4097)), "", false},
	} {
		user, err := c.principal.Identify(t.Context())
		if user != c.user || (err == nil) != c.ok || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %q, %v", name, user, err)
		}
	}
}

func TestATextOfAClientFitsIntoOneLineOfALog(t *testing.T) {
	for text, want := range map[string]string{
		"deploy": "deploy", "": "", "a\nb": `"a\nb"`, "ü": `"\u00fc"`, `say "x"`: `"say \"x\""`,
		strings.Repeat("x", 1000): `"` + strings.Repeat("x", 127),
	} {
		if got := tripseal.PlainText(text); got != want {
			t.Errorf("%q is shown as %s", text, got)
		}
	}
}
