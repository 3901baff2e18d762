package compat

import (
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

// TestWhatAKeyHolderCanWrite opens payloads that no peer writes. Somebody with the key could write
// them. Even these payloads must have only one reading, and their times must not overflow.
func TestWhatAKeyHolderCanWrite(t *testing.T) {
	secret := []byte("0123456789abcdefghijklmnopqrstuv")
	python := mustPython(t, []string{"3031323334353637383961626364656667686a6b6c6d6e6f7071727374757677"}, PythonOptions{})
	digest, err := python.Digest(&tripseal.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	typeScript, err := TypeScript(secret, TypeScriptOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mcpd, err := McpD(secret, McpDOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := mcpd.(*mcpdFormat).bindTag(&tripseal.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	envelopes := map[string]struct {
		payload string
		open    func(payload string) (tripseal.Claims, error)
	}{
		"Python": {`{"v":1,"iat":1,"exp":2,"m":"","t":"","a":"` + string(digest) + `","s":"x"}`, func(payload string) (tripseal.Claims, error) {
			return python.Open(t.Context(), &tripseal.Binding{}, python.seal([]byte(payload)))
		}},
		"TypeScript": {`{"p":1,"exp":2}`, func(payload string) (tripseal.Claims, error) {
			return typeScript.Open(t.Context(), &tripseal.Binding{}, typeScript.(*typeScriptFormat).sign([]byte(payload)))
		}},
		"McpD": {`{"s":"x","b":"` + tag + `","exp":2}`, func(payload string) (tripseal.Claims, error) {
			return mcpd.Open(t.Context(), &tripseal.Binding{}, mcpd.(*mcpdFormat).sign([]byte(payload)))
		}},
		"Ruby": {`{"v":1,"exp":2,"m":"","t":"","a":"d","s":"x"}`, func(payload string) (tripseal.Claims, error) {
			return rubyClaims(payload, &tripseal.Binding{})
		}},
	}
	for name, e := range envelopes {
		if _, err := e.open(e.payload); err != nil {
			t.Fatalf("%s: the payload %s does not open: %v", name, e.payload, err)
		}
		members := strings.Split(strings.Trim(e.payload, "{}"), ",")
		for _, member := range members {
			twice := "{" + strings.Join(append([]string{member}, members...), ",") + "}"
			if _, err := e.open(twice); err == nil {
				t.Errorf("%s: %s opens with a claim that stands twice", name, twice)
			}
			escaped := "{" + strings.Join(members, ",") + `,"\u00` + hexOf(member[1]) + member[2:] + "}"
			if _, err := e.open(escaped); err == nil {
				t.Errorf("%s: %s opens with a claim that stands twice", name, escaped)
			}
		}
	}

	// The Python format refuses times that are out of range. The TypeScript format replaces them by
	// the largest or smallest time.
	for _, times := range []string{`"iat":1e300,"exp":2`, `"iat":-1e300,"exp":2`, `"iat":1,"exp":1e300`, `"iat":1,"exp":1e15`} {
		if c, err := envelopes["Python"].open(strings.Replace(envelopes["Python"].payload, `"iat":1,"exp":2`, times, 1)); err == nil {
			t.Errorf("Python: %s opens as %+v", times, c)
		}
	}
	for exp, want := range map[string]int64{"1e300": throughSecond(maxSeconds), "-1e300": throughSecond(-maxSeconds), "1.9": 2000, "-0.5": 0} {
		if c, err := envelopes["TypeScript"].open(`{"exp":` + exp + `}`); err != nil || c.Expires != want {
			t.Errorf("TypeScript: exp %s ends at %d, %v, want %d", exp, c.Expires, err, want)
		}
	}
	// Rounding makes the lifetime of a token shorter, never longer.
	c, err := envelopes["Python"].open(strings.Replace(envelopes["Python"].payload, `"iat":1,"exp":2`, `"iat":1.0001,"exp":2.0009`, 1))
	if err != nil || c.Issued != 1001 || c.Expires != 2000 {
		t.Errorf("Python: from %d to %d, %v", c.Issued, c.Expires, err)
	}
}

func hexOf(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}

func TestWhatMcpDBinds(t *testing.T) {
	secret := []byte("0123456789abcdefghijklmnopqrstuv")
	tag := func(bind McpDBinding, b tripseal.Binding) string {
		f, err := newMcpD(secret, McpDOptions{Bind: bind})
		if err != nil {
			t.Fatal(err)
		}
		tag, err := f.bindTag(&b)
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	tool := tripseal.Binding{Method: "tools/call", Target: "x", User: "alice"}
	prompt := tripseal.Binding{Method: "prompts/get", Target: "x", User: "alice"}
	resource := tripseal.Binding{Method: "resources/read", Target: "x", User: "alice"}
	none := tripseal.Binding{Method: "resources/read", User: "alice"}
	zero := tripseal.Binding{Method: "tools/call", Target: "\x00", User: "{\x00"}
	if tag(BindSubjectAndTool, tool) != tag(BindSubjectAndTool, prompt) {
		t.Error("a tool and a prompt of one name have different tags, as they have not in mcp.d")
	}
	if tag(BindSubjectAndTool, resource) == tag(BindSubjectAndTool, tool) || tag(BindSubjectAndTool, resource) != tag(BindSubjectAndTool, none) {
		t.Error("a resource's URI counts, as it does not in mcp.d")
	}
	if tag(BindNone, tool) != tag(BindNone, zero) || tag(BindNone, tool) != tag(BindSubject, tripseal.Binding{}) {
		t.Error("BindNone binds something")
	}
}

func TestRubyFloats(t *testing.T) {
	for literal, want := range map[string]string{
		"3281864504635544.5": "3281864504635544.5", "1234567890123456.0": "1.234567890123456e+15", "1e15": "1.0e+15",
		"123456789012345.0": "123456789012345.0", "999999999999999.9": "999999999999999.9", "-9007199254740991.5": "-9.007199254740992e+15",
		"-4503599627370495.5": "-4503599627370495.5", "0.0001": "0.0001", "0.00001": "1.0e-05", "1.5e-10": "1.5e-10", "-0": "0", "-0.0": "-0.0",
	} {
		if got, ok := rubyNumber(nil, []byte(literal)); !ok || string(got) != want {
			t.Errorf("%s is written %s, want %s", literal, got, want)
		}
	}
}
