package compat

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/jsonvalue"
)

// fuzzSecret differs from process to process, so that no process holds a token
// that another one minted.
var fuzzSecret = func() []byte {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return secret
}()

// fuzzed is a format under test, and how somebody with its key would make a
// token of a payload.
type fuzzed struct {
	format mcpseal.Format
	craft  func(payload []byte) string
}

// What a fuzz input stands for.
const (
	asText    = iota // a token
	asPayload        // what a key holder put into a token
	asEdit           // a change to a token that was minted
	modes
)

// splice edits a token: where, how much goes, and what comes instead.
func splice(token, edit string) string {
	if len(edit) < 2 {
		return token
	}
	at := int(edit[0]) % len(token)
	return token[:at] + edit[2:] + token[min(at+int(edit[1]), len(token)):]
}

// fuzzFormat feeds a decoder texts, payloads that a key holder made, and edits
// of a token. A text that opens must be the one that was minted; a payload that
// opens must survive another round.
func fuzzFormat(f *testing.F, target fuzzed, vectorFile string) {
	binding := &mcpseal.Binding{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"a":1}`)}
	now := time.Now().UnixMilli()
	minted, err := target.format.Seal(f.Context(), binding, &mcpseal.Claims{Issued: now, Expires: now + 600_000, State: "1", HasState: true})
	if err != nil {
		f.Fatal(err)
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
		token, crafted := text, mode%modes == asPayload
		switch mode % modes {
		case asPayload:
			token = target.craft([]byte(text))
		case asEdit:
			token = splice(minted, text)
		}
		c, err := target.format.Open(t.Context(), binding, token)
		if err != nil {
			if c.State != "" || c.HasState {
				t.Fatal("a state came back beside an error")
			}
			return
		}
		if !crafted && token != minted {
			t.Fatalf("%q opens and was never minted", token)
		}
		if crafted && !json.Valid([]byte(text)) {
			t.Fatalf("the payload %q opens and is not JSON", text)
		}
		again := mcpseal.Claims{Issued: now, Expires: now + 600_000, State: c.State, HasState: c.HasState}
		sealed, err := target.format.Seal(t.Context(), binding, &again)
		if err != nil {
			t.Fatalf("the state %q opens but is not sealed: %v", c.State, err)
		}
		if second, err := target.format.Open(t.Context(), binding, sealed); err != nil || second.State != c.State {
			t.Fatalf("the state %q came back as %q, %v", c.State, second.State, err)
		}
	})
}

// seedVectors are some cases of each kind.
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

func FuzzPython(f *testing.F) {
	format, err := Python([][]byte{fuzzSecret}, PythonOptions{})
	if err != nil {
		f.Fatal(err)
	}
	fuzzFormat(f, fuzzed{format, format.(*pythonFormat).seal}, "python-boundary.json")
}

func FuzzTypeScript(f *testing.F) {
	format, err := TypeScript(fuzzSecret, TypeScriptOptions{})
	if err != nil {
		f.Fatal(err)
	}
	fuzzFormat(f, fuzzed{format, format.(*typeScriptFormat).sign}, "typescript-hmac.json")
}

func FuzzMcpDSigned(f *testing.F) {
	format, err := McpD(fuzzSecret, McpDOptions{})
	if err != nil {
		f.Fatal(err)
	}
	fuzzFormat(f, fuzzed{format, func(payload []byte) string { return format.(*mcpdFormat).sign(payload) }}, "mcpd-signed.json")
}

func FuzzMcpDEncrypted(f *testing.F) {
	format, err := McpD(fuzzSecret, McpDOptions{Encrypted: true})
	if err != nil {
		f.Fatal(err)
	}
	tag, err := format.(*mcpdFormat).bindTag(&mcpseal.Binding{})
	if err != nil {
		f.Fatal(err)
	}
	fuzzFormat(f, fuzzed{format, func(payload []byte) string {
		return format.(*mcpdFormat).sealer.seal(mcpdEncryptedPrefix, nil, payload, []byte(tag))
	}}, "mcpd-encrypted.json")
}

func FuzzRuby(f *testing.F) {
	format, err := Ruby(fuzzSecret)
	if err != nil {
		f.Fatal(err)
	}
	fuzzFormat(f, fuzzed{format, func(payload []byte) string {
		return format.(*rubyFormat).sealer.seal(rubyPrefix, nil, payload, []byte(rubyPrefix))
	}}, "ruby-aesgcm.json")
}

// FuzzArguments feeds the canonical texts to themselves: what one style wrote,
// it must write again.
func FuzzArguments(f *testing.F) {
	for _, c := range seedVectors(f, "python-args-digest.json") {
		f.Add(orEmpty(c.ArgumentsJSON))
	}
	f.Add(`{"b":[1,-0,1e400,1E-7,"\ud800é"],"a":{"":null}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for name, rewrite := range map[string]func(*jsonvalue.Document, []byte) ([]byte, error){"python": pythonArguments, "ruby": rubyArguments} {
			once, err := rewritten(text, name == "python", rewrite)
			if err != nil {
				continue
			}
			if twice, err := rewritten(string(once), name == "python", rewrite); err != nil || string(twice) != string(once) {
				t.Fatalf("%s: %q becomes %q, then %q, %v", name, text, once, twice, err)
			}
			if name == "ruby" || !strings.Contains(string(once), "N") && !strings.Contains(string(once), "I") {
				if !json.Valid(once) {
					t.Fatalf("%s: %q becomes %q", name, text, once)
				}
			}
		}
	})
}
