package exactargs

import (
	"bytes"
	"encoding/json"
	"testing"
)

type (
	diffInner struct {
		A int             `json:"a,omitempty"`
		B *float64        `json:"b,omitempty"`
		R json.RawMessage `json:"r,omitempty"`
		M map[int8]string `json:"m,omitempty"`
	}
	diffEmbedded struct {
		E string `json:"e,omitempty"`
	}
	diffIn struct {
		diffEmbedded
		I *diffInner     `json:"i,omitempty"`
		S []diffInner    `json:"s,omitempty"`
		X any            `json:"x,omitempty"`
		U uint64         `json:"u,omitempty"`
		F float64        `json:"f,omitempty"`
		Y []byte         `json:"y,omitempty"`
		Z [2]int         `json:"z"`
		K map[string]any `json:"k,omitempty"`
		N json.Number    `json:"n,omitempty"`
		P **bool         `json:"p,omitempty"`
	}
)

// FuzzTheHandlerGetsWhatTheCursorIsBoundTo checks that the cursor is bound to what the handler
// gets: encoding/json must decode the bound text into the handler's value.
func FuzzTheHandlerGetsWhatTheCursorIsBoundTo(f *testing.F) {
	for _, seed := range []string{
		`{"i":{"a":1,"b":1.5e-7,"r":{"x":[1,null]},"m":{"1":"a","-1":"b"}},"s":[{"a":2},{}],"p":true}`, `{"m":{"01":"x"},"y":"AR==","z":[1]}`,
		`{"x":[18446744073709551615,9007199254740993,1e19,-1e18,-0,1.0,{"E":1}],"u":1e19,"f":0.30000000000000004}`, `{"k":{"\u212a":1,"k":2},"n":"1e2"}`, `{"ſ":[],"e":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	reader := readerOf[diffIn](f, `{"type":"object"}`)
	bind := func(t *testing.T, in *diffIn) []byte {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		_, bound, _, err := reader.Read(text, 1<<20)
		if err != nil {
			t.Fatalf("%s cannot be read again: %v", text, err)
		}
		return bound
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, bound, _, err := reader.Read(text, 1<<20)
		if err != nil {
			return
		}
		var theirs diffIn
		decoder := json.NewDecoder(bytes.NewReader(bound))
		decoder.UseNumber() // otherwise Decode would round the numbers in values of type any
		if err := decoder.Decode(&theirs); err != nil {
			t.Fatalf("%q is bound as %s: %v", text, bound, err)
		}
		if a, b := bind(t, &in), bind(t, &theirs); !bytes.Equal(a, b) {
			t.Fatalf("%q is bound as %s: %s, not %s", text, bound, a, b)
		}
	})
}
