package compat_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/sealtest"
)

var (
	secret = []byte("hush-hush-hush-hush-hush-hush-32")
	other  = []byte("another-another-another-another!")
)

func must(t testing.TB, format tripseal.Format, err error) tripseal.Format {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return format
}

// sealed returns the token that Seal makes. Like a boundary, it first adds the digest of the
// arguments to the claims.
func sealed(t testing.TB, format tripseal.Format, binding *tripseal.Binding, claims tripseal.Claims) (token string, err error) {
	if claims.Arguments, err = format.Digest(binding); err != nil {
		return "", err
	}
	return format.Seal(t.Context(), binding, &claims)
}

// bindAll is a function for the option Bind. It binds tokens to everything that can be bound.
func bindAll(b *tripseal.Binding) (string, error) {
	digest, err := b.ArgumentsDigest()
	return fmt.Sprintf("%q %q %x %q %q", b.Method, b.Target, digest, b.Audience, b.User), err
}

const bindable = tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser

// formats returns all formats in all modes, with the same secret.
func formats(t testing.TB, secret []byte) map[string]tripseal.Format {
	t.Helper()
	all := map[string]tripseal.Format{}
	add := func(name string) func(tripseal.Format, error) {
		return func(f tripseal.Format, err error) { all[name] = must(t, f, err) }
	}
	add("Python")(compat.Python([][]byte{secret, append([]byte("x"), secret...)}, compat.PythonOptions{}))
	add("TypeScript")(compat.TypeScript(secret, compat.TypeScriptOptions{Text: true}))
	add("TypeScript, bound")(compat.TypeScript(secret, compat.TypeScriptOptions{Text: true, Bind: bindAll, Binds: bindable}))
	add("McpD, signed")(compat.McpD(secret, compat.McpDOptions{}))
	add("McpD, signed, tool")(compat.McpD(secret, compat.McpDOptions{Bind: compat.BindSubjectAndTool}))
	add("McpD, signed, none")(compat.McpD(secret, compat.McpDOptions{Bind: compat.BindNone}))
	add("McpD, encrypted")(compat.McpD(secret, compat.McpDOptions{Encrypted: true}))
	add("McpD, encrypted, tool")(compat.McpD(secret, compat.McpDOptions{Encrypted: true, Bind: compat.BindSubjectAndTool}))
	add("Ruby")(compat.Ruby(secret))
	return all
}

func TestEveryFormatPassesTheSuite(t *testing.T) {
	for name, format := range formats(t, secret) {
		t.Run(name, func(t *testing.T) { sealtest.TestFormat(t, format) })
	}
	t.Run("TypeScript, JSON", func(t *testing.T) {
		format, err := compat.TypeScript(secret, compat.TypeScriptOptions{})
		sealtest.TestFormat(t, jsonStates{must(t, format, err)})
	})
}

// jsonStates writes states as JSON strings, for a format that takes JSON only.
type jsonStates struct{ tripseal.Format }

func (f jsonStates) Seal(ctx context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	changed := *c
	if c.HasState {
		text, err := json.Marshal(c.State)
		if err != nil {
			return "", err
		}
		changed.State = string(text)
	}
	return f.Format.Seal(ctx, b, &changed)
}

func (f jsonStates) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	c, err := f.Format.Open(ctx, b, token)
	if err == nil && c.HasState {
		err = json.Unmarshal([]byte(c.State), &c.State)
	}
	return c, err
}

// TestNoFormatAcceptsASecondText changes a token by one character: it replaces, removes or inserts
// a character at every place, and tries many characters. It also cuts the token at every place.
func TestNoFormatAcceptsASecondText(t *testing.T) {
	now := time.Now().UnixMilli()
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\r\t\x00\xff"
	for name, format := range formats(t, secret) {
		t.Run(name, func(t *testing.T) {
			binding := &tripseal.Binding{Method: "tools/call", Target: "t", User: "alice"}
			if format.Carries()&tripseal.ClaimUser == 0 {
				binding.User = ""
			}
			token, err := sealed(t, format, binding, tripseal.Claims{Issued: now, Expires: now + 60_000, State: "s", HasState: true})
			if err != nil {
				t.Fatal(err)
			}
			refuse := func(text string) {
				if _, err := format.Open(t.Context(), binding, text); err == nil {
					t.Fatalf("%q opens, and so does %q", text, token)
				}
			}
			for i := range len(token) {
				for _, c := range []byte(characters) {
					if token[i] != c {
						refuse(token[:i] + string([]byte{c}) + token[i+1:])
					}
				}
				refuse(token[:i] + token[i+1:])
				refuse(token[:i])
			}
			for i := range len(token) + 1 {
				for _, c := range []byte(characters) {
					refuse(token[:i] + string([]byte{c}) + token[i:])
				}
			}
			if _, err := format.Open(t.Context(), binding, token); err != nil {
				t.Fatal("the token itself does not open")
			}
			if _, err := formats(t, other)[name].Open(t.Context(), binding, token); err == nil {
				t.Error("a token opens under another secret")
			}
		})
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	for name, format := range formats(t, secret) {
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("format", "format", format)
		slog.New(slog.NewTextHandler(&log, nil)).Info("format", "format", format)
		text, _ := json.Marshal(format)
		if text := fmt.Sprint(format); !strings.HasPrefix(text, "compat.") || len(text) > 40 || text != fmt.Sprintf("%#v", format) ||
			text != fmt.Sprintf("%x", format) || !strings.Contains(log.String(), text) {
			t.Errorf("%s prints as %s", name, text)
		}
		printed := fmt.Sprintf("%v %+v %#v %s %q %x %d %e", format, format, format, format, format, format, format, format) +
			fmt.Sprintf("%+v %#v", struct{ f tripseal.Format }{format}, []tripseal.Format{format}) + log.String() + string(text)
		for _, leak := range []string{string(secret), hex.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret), "104 117 115 104", "0x68, 0x75"} {
			if strings.Contains(printed, leak) {
				t.Errorf("%s prints its secret: %s", name, printed)
			}
		}
	}
}

func TestShortSecretsAndNonsenseAreRefused(t *testing.T) {
	short := secret[:31]
	build := func(f tripseal.Format, err error) error {
		if err == nil && f == nil {
			return errors.New("neither format nor error")
		}
		return err
	}
	for name, err := range map[string]error{
		"Python, none":          build(compat.Python(nil, compat.PythonOptions{})),
		"Python, short":         build(compat.Python([][]byte{secret, short}, compat.PythonOptions{})),
		"Python, twice":         build(compat.Python([][]byte{secret, secret}, compat.PythonOptions{})),
		"Python, empty request": build(compat.Python([][]byte{secret}, compat.PythonOptions{ClaimEmpty: tripseal.ClaimRequest})),
		"TypeScript, short":     build(compat.TypeScript(short, compat.TypeScriptOptions{})),
		"TypeScript, none":      build(compat.TypeScript(nil, compat.TypeScriptOptions{})),
		"McpD, short":           build(compat.McpD(short, compat.McpDOptions{})),
		"McpD, binding":         build(compat.McpD(secret, compat.McpDOptions{Bind: 7})),
		"Ruby, short":           build(compat.Ruby(short)),
		"Ruby, long":            build(compat.Ruby(append([]byte("x"), secret...))),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error repeats the secret: %v", name, err)
		}
	}
}

func TestBindsIsHeldToWhatBindDoes(t *testing.T) {
	principal := func(b *tripseal.Binding) (string, error) { return b.User, nil }
	target := func(b *tripseal.Binding) (string, error) { return b.Target, nil }
	for name, options := range map[string]compat.TypeScriptOptions{
		"no function":           {Binds: tripseal.ClaimUser},
		"a constant":            {Binds: tripseal.ClaimUser, Bind: func(*tripseal.Binding) (string, error) { return "x", nil }},
		"the target alone":      {Binds: tripseal.ClaimRequest, Bind: target},
		"principal as audience": {Binds: tripseal.ClaimAudience, Bind: principal},
		"one too many":          {Binds: bindable, Bind: principal},
		"flow":                  {Binds: tripseal.ClaimFlow, Bind: bindAll},
		"an error":              {Binds: tripseal.ClaimUser, Bind: func(*tripseal.Binding) (string, error) { return "", errors.New("no") }},
		"a panic":               {Binds: tripseal.ClaimUser, Bind: func(*tripseal.Binding) (string, error) { panic("no") }},
	} {
		if _, err := compat.TypeScript(secret, options); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	format, err := compat.TypeScript(secret, compat.TypeScriptOptions{Binds: tripseal.ClaimUser, Bind: principal})
	if must(t, format, err).Carries() != tripseal.ClaimUser {
		t.Errorf("carries %v", format.Carries())
	}
}

func TestABindThatFailsIsAFailedCheck(t *testing.T) {
	calls := 0
	format, err := compat.TypeScript(secret, compat.TypeScriptOptions{Text: true, Bind: func(*tripseal.Binding) (string, error) {
		if calls++; calls%2 == 0 {
			panic("hush")
		}
		return "", errors.New("hush")
	}})
	var log strings.Builder
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		AlsoOpen: []tripseal.Accepted{{Format: must(t, format, err), Waive: tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimUser | tripseal.ClaimQuestions | tripseal.ClaimFlow}},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	unbound := must2(t)(compat.TypeScript(secret, compat.TypeScriptOptions{Text: true}))
	token, err := sealed(t, unbound, &tripseal.Binding{}, tripseal.Claims{Issued: now, Expires: now + 60_000})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := boundary.Open(t.Context(), tripseal.Request{Method: "tools/call"}, token)
		var rejected *tripseal.RejectError
		if !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonCodecFailed {
			t.Errorf("%v", err)
		}
	}
	if strings.Contains(log.String(), "hush") {
		t.Errorf("the log repeats a callback's words: %s", log.String())
	}
	boundary.Open(t.Context(), tripseal.Request{Method: "tools/call"}, token+"A")
	if calls != 2 {
		t.Errorf("Bind was called %d times: a forged token asks for nothing", calls)
	}
}

// TestAForgedTokenBuysNoDigest opens tokens in calls whose arguments have no digest, because two
// members have the same name. A forged token must be rejected as forged, not because of the
// arguments. This shows that a format checks the token before it digests the arguments.
func TestAForgedTokenBuysNoDigest(t *testing.T) {
	every := tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser | tripseal.ClaimQuestions | tripseal.ClaimFlow
	all := formats(t, secret)
	all["native"] = tripseal.NativeFormat(tripseal.Ephemeral())
	for name, format := range all {
		boundary := newBoundary(t, tripseal.Config{Format: format, Waive: every &^ format.Carries()})
		request := tripseal.Request{Method: "tools/call", Target: "purge"}
		first, _ := boundary.Open(t.Context(), request, "")
		token, err := boundary.Seal(t.Context(), &first, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Arguments = []byte(`{"a":1,"a":2}`)
		for text, want := range map[string]tripseal.Reason{
			token:                           tripseal.ReasonArguments,
			token[:len(token)-6] + "AAAAAA": tripseal.ReasonForged,
			format.Prefix() + "A":           tripseal.ReasonMalformed,
		} {
			if format.Carries()&tripseal.ClaimArguments == 0 && text == token {
				continue
			}
			var rejected *tripseal.RejectError
			_, err := boundary.Open(t.Context(), request, text)
			if !errors.As(err, &rejected) || rejected.Reason != want {
				t.Errorf("%s: %.20s is rejected as %v, want %s", name, text, rejected, want)
			}
		}
	}
}

func TestStatesThatAPeerCannotCarryAreRefused(t *testing.T) {
	now := time.Now().UnixMilli()
	all := formats(t, secret)
	all["TypeScript, JSON"] = must2(t)(compat.TypeScript(secret, compat.TypeScriptOptions{}))
	for name, format := range all {
		states := []string{"\xff", "a\xc3", "\xed\xa0\xbd\xed\xb8\x80"}
		if name == "TypeScript, JSON" {
			states = append(states, "", "step=1", "{", "1 2", " 1", "1\n", `1,"x":2`, `1,"exp":9`, `nul`, strings.Repeat("[", 128)+strings.Repeat("]", 128))
		}
		for _, state := range states {
			token, err := sealed(t, format, &tripseal.Binding{Method: "tools/call"}, tripseal.Claims{Issued: now, Expires: now + 60_000, State: state, HasState: true})
			if err == nil {
				t.Errorf("%s seals %q: %s", name, state, token)
			}
		}
	}
	format := all["TypeScript, JSON"]
	for _, state := range []string{"null", `""`, `{"n":12345678901234567890, "a":[1,2]}`, `"\ud800"`} {
		token, err := sealed(t, format, &tripseal.Binding{}, tripseal.Claims{Issued: now, Expires: now + 60_000, State: state, HasState: true})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := format.Open(t.Context(), &tripseal.Binding{}, token); err != nil || c.State != state {
			t.Errorf("%s came back as %s, %v", state, c.State, err)
		}
	}
}

func must2(t testing.TB) func(tripseal.Format, error) tripseal.Format {
	return func(f tripseal.Format, err error) tripseal.Format { return must(t, f, err) }
}

func TestATokenNeverOutlivesItsPolicy(t *testing.T) {
	for name, format := range formats(t, secret) {
		for _, ttl := range []int64{2_000, 2_001, 2_999, 600_000} {
			for _, issued := range []int64{1_800_000_000_000, 1_800_000_000_001, 1_800_000_000_999} {
				binding := &tripseal.Binding{Method: "tools/call"}
				token, err := sealed(t, format, binding, tripseal.Claims{Issued: issued, Expires: issued + ttl, HasState: true})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				c, err := format.Open(t.Context(), binding, token)
				if err != nil || c.Expires > issued+ttl || c.Expires < issued+ttl-1000 || c.Expires <= issued {
					t.Errorf("%s: expires %d ms after the policy says, %v", name, c.Expires-issued-ttl, err)
				}
			}
		}
		if name == "Python" {
			continue // Python tokens hold times with fractions of a second
		}
		if _, err := sealed(t, format, &tripseal.Binding{}, tripseal.Claims{Issued: 1_800_000_000_500, Expires: 1_800_000_000_999, HasState: true}); err == nil {
			t.Errorf("%s seals a token that is dead at once", name)
		}
	}
}

func TestMcpDWithoutASecretSaysSo(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	one := must2(t)(compat.McpD(nil, compat.McpDOptions{Logger: logger}))
	two := must2(t)(compat.McpD([]byte{}, compat.McpDOptions{Logger: logger}))
	if strings.Count(log.String(), "random") != 2 || !strings.Contains(log.String(), "WARN") {
		t.Errorf("the log says %s", log.String())
	}
	now := time.Now().UnixMilli()
	token, err := one.Seal(t.Context(), &tripseal.Binding{}, &tripseal.Claims{Issued: now, Expires: now + 60_000, HasState: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Open(t.Context(), &tripseal.Binding{}, token); err != nil {
		t.Error(err)
	}
	if _, err := two.Open(t.Context(), &tripseal.Binding{}, token); err == nil {
		t.Error("two random secrets are the same")
	}
}

func TestPythonPrincipal(t *testing.T) {
	for want, parts := range map[string][3]string{
		`["c",null,null]`:                 {"c", "", ""},
		`["c","https://iss","s"]`:         {"c", "https://iss", "s"},
		`["cl\u00efent","i\"","\u007f/"]`: {"clïent", `i"`, "\x7f/"},
	} {
		if got, err := compat.PythonUser(parts[0], parts[1], parts[2]); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	for name, parts := range map[string][3]string{
		"a name that is not text": {"\xff", "", ""}, "nobody": {"", "", ""}, "no client": {"", "https://iss", "s"},
	} {
		if got, err := compat.PythonUser(parts[0], parts[1], parts[2]); err == nil || got != "" {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestArgumentsWithTwoReadingsAreRefusedWhereTheyAreBound tries two kinds of arguments. In the
// first, two members have the same name. The option Bind may read only the last of them, while a
// handler merges both. In the second, a name has half a surrogate pair.
func TestArgumentsWithTwoReadingsAreRefusedWhereTheyAreBound(t *testing.T) {
	bind := func(b *tripseal.Binding) (string, error) {
		var value any
		err := json.Unmarshal(b.Arguments, &value)
		return fmt.Sprint(value), err
	}
	format := must2(t)(compat.TypeScript(secret, compat.TypeScriptOptions{Text: true, Bind: bind, Binds: tripseal.ClaimArguments}))
	if _, err := format.Digest(&tripseal.Binding{Arguments: []byte(`{"a":{"y":"2"}}`)}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"a":{"x":"evil"},"a":{"y":"2"}}`, `{"\ud800":1}`} {
		if digest, err := format.Digest(&tripseal.Binding{Arguments: []byte(text)}); err == nil {
			t.Errorf("%s has the digest %s", text, digest)
		}
	}
}
