package compat

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// fuzzed is a format under test. Somebody with its key can make a token from any payload, with the
// function craft, and get the payload of a token, with the function reveal.
type fuzzed struct {
	format tripseal.Format
	craft  func(payload []byte) string
	reveal func(token string) (string, error)
}

// These modes say what the text of a fuzz input is.
const (
	asText    = iota // a token
	asPayload        // the payload of a token that a key holder made
	asEdit           // a change to the minted token: see splice
	modes
)

// splice replaces a part of a token. The first byte of the edit says where that part begins, and
// the second byte is the length of the part. The other bytes of the edit replace the part.
func splice(token, edit string) string {
	if len(edit) < 2 {
		return token
	}
	at := int(edit[0]) % len(token)
	return token[:at] + edit[2:] + token[min(at+int(edit[1]), len(token)):]
}

// fuzzFormat opens one token for each fuzz input. The input is the token itself (asText), a change to
// the minted token (asEdit), or the payload of a token that a key holder made (asPayload). In the
// first two modes, no token may open except the minted one. In every mode, the state of a token that
// opens must survive another Seal and Open.
//
// In the first two modes, each process has its own secret, so no input is a token that another
// process minted. In the mode asPayload, all processes have the same secret.
func fuzzFormat(f *testing.F, build func(secret []byte) fuzzed, vectorFile string) {
	binding := &tripseal.Binding{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"a":1}`)}
	now := time.Now().UnixMilli()
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	target, known := build(secret), build([]byte("0123456789abcdefghijklmnopqrstuv"))
	mint := func(target fuzzed, state string) string {
		token, err := target.format.Seal(f.Context(), binding, &tripseal.Claims{Issued: now, Expires: now + 600_000, State: state, HasState: true})
		if err != nil {
			f.Fatal(err)
		}
		return token
	}
	minted := mint(target, "1")
	for _, state := range []string{"1", `"\ud83d\ude00 é\n"`, "123456"} {
		token := mint(known, state)
		payload, err := known.reveal(token)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := known.format.Open(f.Context(), binding, known.craft([]byte(payload))); err != nil {
			f.Fatalf("the payload %s does not open: %v", payload, err)
		}
		f.Add(payload, uint8(asPayload))
	}
	f.Add("\x09\x01A", uint8(asEdit))
	f.Add("\xff\x00=", uint8(asEdit))
	for _, c := range seedVectors(f, vectorFile) {
		f.Add(c.Token, uint8(asText))
		if c.EnvelopeJSON != nil {
			f.Add(*c.EnvelopeJSON, uint8(asPayload))
		}
		if c.Internals != nil && c.Internals.EnvelopeJSON != nil {
			f.Add(*c.Internals.EnvelopeJSON, uint8(asPayload))
		}
	}
	f.Fuzz(func(t *testing.T, text string, mode uint8) {
		under, token := target, text
		switch mode % modes {
		case asPayload:
			under, token = known, known.craft([]byte(text))
		case asEdit:
			token = splice(minted, text)
		}
		c, err := under.format.Open(t.Context(), binding, token)
		if err != nil {
			if c.State != "" || c.HasState {
				t.Fatal("a state came back beside an error")
			}
			return
		}
		if mode%modes != asPayload && token != minted {
			t.Fatalf("%q opens and was never minted", token)
		}
		if mode%modes == asPayload && !json.Valid([]byte(text)) {
			t.Fatalf("the payload %q opens and is not JSON", text)
		}
		again := tripseal.Claims{Issued: now, Expires: now + 600_000, State: c.State, HasState: c.HasState}
		sealed, err := under.format.Seal(t.Context(), binding, &again)
		if err != nil {
			t.Fatalf("the state %q opens but is not sealed: %v", c.State, err)
		}
		if second, err := under.format.Open(t.Context(), binding, sealed); err != nil || second.State != c.State {
			t.Fatalf("the state %q came back as %q, %v", c.State, second.State, err)
		}
	})
}

// seedVectors returns the crafted cases of a file, and some of the other cases. It leaves out every
// case with a long token, even if the case is crafted.
func seedVectors(f *testing.F, file string) (some []vector) {
	text, err := os.ReadFile(filepath.Join("testdata", "vectors", file))
	if err != nil {
		f.Fatal(err)
	}
	var vectors struct{ Cases []vector }
	if err := json.Unmarshal(text, &vectors); err != nil {
		f.Fatal(err)
	}
	for i, c := range vectors.Cases {
		if (i%5 == 0 || c.Kind == "crafted") && len(c.Token) < 2000 {
			some = append(some, c)
		}
	}
	return some
}

// built returns a function that converts a new format to the type F. That function fails the test
// if the format could not be built.
func built[F tripseal.Format](f *testing.F) func(tripseal.Format, error) F {
	return func(format tripseal.Format, err error) F {
		if err != nil {
			f.Fatal(err)
		}
		return format.(F)
	}
}

func FuzzPython(f *testing.F) {
	fuzzFormat(f, func(secret []byte) fuzzed {
		format := built[*pythonFormat](f)(Python([][]byte{secret}, PythonOptions{}))
		return fuzzed{format, format.seal, format.open}
	}, "python-boundary.json")
}

func FuzzTypeScript(f *testing.F) {
	fuzzFormat(f, func(secret []byte) fuzzed {
		format := built[*typeScriptFormat](f)(TypeScript(secret, TypeScriptOptions{}))
		return fuzzed{format, format.sign, format.verify}
	}, "typescript-hmac.json")
}

func fuzzMcpD(f *testing.F, options McpDOptions, file string) {
	fuzzFormat(f, func(secret []byte) fuzzed {
		format := built[*mcpdFormat](f)(McpD(secret, options))
		tag, err := format.bindTag(&tripseal.Binding{})
		if err != nil {
			f.Fatal(err)
		}
		craft := format.sign
		if options.Encrypted {
			craft = func(payload []byte) string { return format.sealer.seal(mcpdEncryptedPrefix, nil, payload, []byte(tag)) }
		}
		return fuzzed{format, craft, func(token string) (string, error) { return format.open(token, tag) }}
	}, file)
}

func FuzzMcpDSigned(f *testing.F) { fuzzMcpD(f, McpDOptions{}, "mcpd-signed.json") }
func FuzzMcpDEncrypted(f *testing.F) {
	fuzzMcpD(f, McpDOptions{Encrypted: true}, "mcpd-encrypted.json")
}

func FuzzRuby(f *testing.F) {
	fuzzFormat(f, func(secret []byte) fuzzed {
		format := built[*rubyFormat](f)(Ruby(secret))
		return fuzzed{format, func(payload []byte) string {
			return format.sealer.seal(rubyPrefix, nil, payload, []byte(rubyPrefix))
		}, format.open}
	}, "ruby-aesgcm.json")
}

// FuzzNumber writes a JSON number in the style of a peer, and writes the result once more. The second time must change
// nothing.
func FuzzNumber(f *testing.F) {
	for _, number := range []string{"1", "-0", "0.0", "1e400", "1E-7", "-1.5e16", "123456789012345678901", "1e15", "99999999999999990.5"} {
		f.Add(number)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number := strings.TrimPrefix(text, "-")
		if _, err := pythonStyle.Sum([]byte(text)); err != nil || number == "" || number[0] < '0' || '9' < number[0] {
			return
		}
		for peer, write := range map[string]func(dst, literal []byte) ([]byte, bool){
			"python": pythonNumber, "ruby": rubyNumber,
		} {
			once, ok := write(nil, []byte(strings.TrimSpace(text)))
			if !ok || strings.HasSuffix(string(once), "Infinity") {
				continue
			}
			if !json.Valid(once) {
				t.Fatalf("%s: %q becomes %q", peer, text, once)
			}
			if twice, ok := write(nil, once); !ok || string(twice) != string(once) {
				t.Fatalf("%s: %q becomes %q, then %q", peer, text, once, twice)
			}
		}
	})
}
