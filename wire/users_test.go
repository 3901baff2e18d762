package wire_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

func TestASecretNamesOneUserAndIsNotInTheName(t *testing.T) {
	key, other := tripseal.GenerateKey(), tripseal.GenerateKey()
	apiKey := func(h http.Header) (string, error) { return h.Get("X-Api-Key"), nil }
	bearer := wire.SecretUsers(key, "bearer", wire.BearerToken)
	names := map[string]string{}
	for what, named := range map[string]struct {
		users  wire.Users
		header http.Header
	}{
		"alice":              {bearer, http.Header{"Authorization": {"Bearer secret-of-alice"}}},
		"bob":                {bearer, http.Header{"Authorization": {"Bearer secret-of-bob"}}},
		"another kind":       {wire.SecretUsers(key, "api key", apiKey), http.Header{"X-Api-Key": {"secret-of-alice"}}},
		"another key":        {wire.SecretUsers(other, "bearer", wire.BearerToken), http.Header{"Authorization": {"Bearer secret-of-alice"}}},
		"one character less": {bearer, http.Header{"Authorization": {"Bearer secret-of-alic"}}},
	} {
		name, err := named.users(named.header)
		if err != nil || name == "" || strings.Contains(name, "secret-of") {
			t.Errorf("%s is %q: %v", what, name, err)
		}
		if same, taken := names[name]; taken {
			t.Errorf("%s and %s are the same user", what, same)
		}
		names[name] = what
	}
	again, _ := wire.SecretUsers(key, "bearer", wire.BearerToken).Of(&http.Request{Header: http.Header{"Authorization": {"bearer  secret-of-alice"}}})
	if names[again] != "alice" {
		t.Errorf("alice is %q on another replica", again)
	}
}

func TestHeadersWithoutOneSecretNameNobodyOrFail(t *testing.T) {
	users := wire.SecretUsers(tripseal.GenerateKey(), "bearer", wire.BearerToken)
	if name, err := users(http.Header{}); name != "" || err != nil {
		t.Errorf("nobody is %q: %v", name, err)
	}
	for _, values := range [][]string{
		{""}, {"Bearer"}, {"Bearer "}, {"Basic eDp5"}, {"Bearer a b"}, {"Bearer a\tb"}, {"Bearer é"}, {"Bearer a", "Bearer b"},
		{"Bearer " + strings.Repeat("a", 16<<10+1)},
	} {
		if name, err := users(http.Header{"Authorization": values}); name != "" || err == nil {
			t.Errorf("%.20q is %q: %v", values, name, err)
		} else if strings.Contains(err.Error(), "eDp5") {
			t.Errorf("the error repeats the header: %v", err)
		}
	}
}

func TestTheFirstOfSeveralUsersCounts(t *testing.T) {
	says := func(name string, err error) wire.Users {
		return func(http.Header) (string, error) { return name, err }
	}
	failure := errors.New("x")
	for _, c := range []struct {
		users []wire.Users
		name  string
		err   error
	}{
		{nil, "", nil},
		{[]wire.Users{says("", nil), says("b", nil)}, "b", nil},
		{[]wire.Users{says("a", nil), says("b", nil)}, "a", nil},
		{[]wire.Users{says("", failure), says("b", nil)}, "", failure},
	} {
		if name, err := wire.FirstOf(c.users...)(nil); name != c.name || err != c.err {
			t.Errorf("%q, %v instead of %q, %v", name, err, c.name, c.err)
		}
	}
}

func TestSecretUsersNeedsAKeyAKindAndAFunction(t *testing.T) {
	for name, f := range map[string]func(){
		"no key":      func() { wire.SecretUsers(tripseal.Key{}, "bearer", wire.BearerToken) },
		"no kind":     func() { wire.SecretUsers(tripseal.GenerateKey(), "", wire.BearerToken) },
		"a colon":     func() { wire.SecretUsers(tripseal.GenerateKey(), "a:b", wire.BearerToken) },
		"no function": func() { wire.SecretUsers(tripseal.GenerateKey(), "bearer", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it did not panic", name)
				}
			}()
			f()
		}()
	}
}
