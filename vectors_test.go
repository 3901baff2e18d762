package tripseal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal/internal/strictjson"
)

// testdata/native.json holds fixed tokens. Every release must open some of them and reject the
// others. The script testdata/verify.mjs checks them against docs/token.md.
const vectorFile = "testdata/native.json"

var update = flag.Bool("update", false, "mint "+vectorFile+" anew")

type vectorSet struct {
	Vectors  []vector       `json:"vectors"`
	Digests  []digestVector `json:"digests"`
	Rejected []vector       `json:"rejected"`
}

type vector struct {
	Name      string        `json:"name"`
	Secret    string        `json:"secret"`
	KeyText   string        `json:"key_text,omitempty"`
	KeyID     string        `json:"key_id,omitempty"`
	Token     string        `json:"token"`
	Method    string        `json:"method"`
	Target    string        `json:"target"`
	Arguments *string       `json:"arguments,omitempty"`
	Audience  string        `json:"audience,omitempty"`
	Principal string        `json:"principal,omitempty"`
	Claims    *vectorClaims `json:"claims,omitempty"`
}

type vectorClaims struct {
	Issued    int64            `json:"issued"`
	Expires   int64            `json:"expires"`
	FlowStart int64            `json:"flow_start"`
	Round     int              `json:"round"`
	Flow      string           `json:"flow"`
	Request   string           `json:"request_digest"`
	Arguments string           `json:"arguments_digest"`
	Audience  string           `json:"audience_digest,omitempty"`
	Principal string           `json:"principal_digest,omitempty"`
	Questions []vectorQuestion `json:"questions"`
	State     *string          `json:"state,omitempty"`
	Elicit    bool             `json:"elicit,omitempty"`
}

type vectorQuestion struct {
	Key  string `json:"key"`
	Kind Kind   `json:"kind"`
}

type digestVector struct {
	Text    *string `json:"text,omitempty"`
	TextHex string  `json:"text_hex,omitempty"`
	Digest  string  `json:"digest,omitempty"`
	Refused bool    `json:"refused,omitempty"`
}

func (v vector) key(t testing.TB) Key {
	t.Helper()
	secret, err := hex.DecodeString(v.Secret)
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (v vector) format(t *testing.T) Format {
	t.Helper()
	ring, err := NewRing(GenerateKey(), v.key(t))
	if err != nil {
		t.Fatal(err)
	}
	return NativeFormat(ring)
}

func (v vector) binding() *Binding {
	b := &Binding{Method: v.Method, Target: v.Target, Audience: v.Audience, User: v.Principal}
	if v.Arguments != nil {
		b.Arguments = []byte(*v.Arguments)
	}
	return b
}

// describeClaims returns the claims of a token in the form that the vectors have.
func describeClaims(t *testing.T, c Claims, b *Binding) *vectorClaims {
	t.Helper()
	d := testDigests(t, b, c.Flow)
	arguments := d.applyMask(d.plain[:])
	v := &vectorClaims{
		Issued: c.Issued, Expires: c.Expires, FlowStart: c.FlowStart, Round: c.Round, Flow: hex.EncodeToString(c.Flow[:]),
		Request: hex.EncodeToString(d.request[:]), Arguments: hex.EncodeToString(arguments[:]), Questions: []vectorQuestion{},
	}
	if b.Audience != "" {
		v.Audience = hex.EncodeToString(d.audience[:])
	}
	if b.User != "" {
		v.Principal = hex.EncodeToString(d.user[:])
	}
	for _, q := range c.Questions {
		v.Questions = append(v.Questions, vectorQuestion(q))
	}
	if c.HasState {
		state := hex.EncodeToString([]byte(c.State))
		v.State = &state
	}
	v.Elicit = c.Elicit
	return v
}

func readVectors(t testing.TB) (set vectorSet) {
	t.Helper()
	raw, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Vectors) < 6 || len(set.Digests) < 40 || len(set.Rejected) < 10 {
		t.Fatalf("%d vectors, %d digests, %d rejections: some are missing", len(set.Vectors), len(set.Digests), len(set.Rejected))
	}
	return set
}

func TestVectors(t *testing.T) {
	if *update {
		mintVectors(t)
	}
	set := readVectors(t)
	ctx := context.Background()
	for _, v := range set.Vectors {
		claims, err := v.format(t).Open(ctx, v.binding(), v.Token)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if got := describeClaims(t, claims, v.binding()); !reflect.DeepEqual(got, v.Claims) {
			t.Errorf("%s: %+v, want %+v", v.Name, got, v.Claims)
		}
		if key := v.key(t); key.Reveal() != v.KeyText || key.ID().String() != v.KeyID {
			t.Errorf("%s: the key is %s, %s", v.Name, key.Reveal(), key.ID())
		}
	}
	for _, v := range set.Rejected {
		claims, err := v.format(t).Open(ctx, v.binding(), v.Token)
		if digest, _ := v.format(t).Digest(v.binding()); err == nil && bytes.Equal(digest, claims.Arguments) {
			t.Errorf("%s: opens", v.Name)
		}
	}
	for _, d := range set.Digests {
		var text []byte
		if d.Text != nil {
			text = []byte(*d.Text)
		} else {
			var err error
			if text, err = hex.DecodeString(d.TextHex); err != nil {
				t.Fatal(err)
			}
		}
		sum, err := strictjson.Sum(text)
		if (err != nil) != d.Refused || err == nil && hex.EncodeToString(sum[:]) != d.Digest {
			t.Errorf("digest of %.60q: %x, %v", text, sum, err)
		}
	}
}

func mintVectors(t *testing.T) {
	var set vectorSet
	ctx := context.Background()
	text := func(s string) *string { return &s }
	state := func(s string) *string { return &s }
	cases := []struct {
		vector
		state     *string
		questions []Question
		rounds    int
		elicit    bool
	}{
		{vector: vector{Name: "every claim", Method: "tools/call", Target: "deploy", Arguments: text(`{"region":"eu","replicas":3}`),
			Audience: "deploy.example.com", Principal: "alice"},
			state: state("step=1"), questions: []Question{{Key: "confirm", Kind: KindForm}}, rounds: 1},
		{vector: vector{Name: "nothing that can be left out", Method: "prompts/get", Target: "greet"}, rounds: 1},
		{vector: vector{Name: "an empty state", Method: "resources/read", Target: "file:///tmp/a%20b", Audience: "svc"}, state: state(""), rounds: 1},
		{vector: vector{Name: "null arguments", Method: "tools/call", Target: "x", Arguments: text(" null "), Principal: "bob"}, state: state("s"), rounds: 2},
		{vector: vector{Name: "odd arguments", Method: "tools/call", Target: "ünïcödé 🦭",
			Arguments: text(`{"z":[1e400,-0.0,0.050,"\ud800","\ud83d\ude00"],"\u0061":{"b":null,"":true}}`), Audience: "svc", Principal: "carol"},
			state: state("\x00\xff binary"), questions: []Question{{Key: "login", Kind: KindURL},
				{Key: "", Kind: KindSampling}, {Key: strings.Repeat("k", 128), Kind: KindRoots}}, rounds: 20},
		{vector: vector{Name: "a long state", Method: "tools/call", Target: "x", Arguments: text(`[]`), Audience: strings.Repeat("a", 300)},
			state: state(strings.Repeat("0123456789", 100)), rounds: 3},
		{vector: vector{Name: "a state of elicit", Method: "tools/call", Target: "x", Principal: "dave"},
			state: state("2:"), questions: []Question{{Key: "confirm", Kind: KindForm}}, rounds: 1, elicit: true},
	}
	for _, c := range cases {
		v := c.vector
		secret := sha256.Sum256([]byte("tripseal vector: " + v.Name))
		v.Secret = hex.EncodeToString(secret[:])
		key := v.key(t)
		v.KeyText, v.KeyID = key.Reveal(), key.ID().String()
		ring, err := NewRing(key)
		if err != nil {
			t.Fatal(err)
		}
		format := NativeFormat(ring)
		synctest.Test(t, func(t *testing.T) { // at a fixed time
			time.Sleep(26 * 365 * 24 * time.Hour)
			b := &Boundary{config: Config{TTL: 10 * time.Minute, URLTTL: 30 * time.Minute, MaxFlow: time.Hour, MaxRounds: 20}}
			round := Round{boundary: b}
			for n := range c.rounds {
				claims, reason := b.nextClaims(&round, c.questions)
				if reason != "" {
					t.Fatal(reason)
				}
				if c.state != nil {
					claims.State, claims.HasState, claims.Elicit = *c.state, true, c.elicit
				}
				if claims.Arguments, err = format.Digest(v.binding()); err != nil {
					t.Fatal(err)
				}
				if v.Token, err = format.Seal(ctx, v.binding(), &claims); err != nil {
					t.Fatal(err)
				}
				v.Claims = describeClaims(t, claims, v.binding())
				round.claims = claims
				time.Sleep(time.Duration(n)*time.Second + 1234*time.Millisecond)
			}
		})
		set.Vectors = append(set.Vectors, v)
	}

	reject := func(name string, change func(*vector)) {
		v := set.Vectors[0]
		v.Name, v.Claims, v.KeyText, v.KeyID = name, nil, "", ""
		change(&v)
		set.Rejected = append(set.Rejected, v)
	}
	reject("a character changed", func(v *vector) { v.Token = v.Token[:50] + flip(v.Token[50:51]) + v.Token[51:] })
	reject("the last character cut", func(v *vector) { v.Token = v.Token[:len(v.Token)-1] })
	reject("a line end", func(v *vector) { v.Token += "\n" })
	reject("padding", func(v *vector) { v.Token += "=" })
	reject("a foreign prefix", func(v *vector) { v.Token = "ms2." + v.Token[4:] })
	reject("another key", func(v *vector) { v.Secret = set.Vectors[1].Secret })
	reject("another method", func(v *vector) { v.Method = "prompts/get" })
	reject("another target", func(v *vector) { v.Target = "destroy" })
	reject("other arguments", func(v *vector) { v.Arguments = text(`{"region":"eu","replicas":4}`) })
	reject("no arguments", func(v *vector) { v.Arguments = nil })
	reject("another audience", func(v *vector) { v.Audience = "other" })
	reject("no audience", func(v *vector) { v.Audience = "" })
	reject("another principal", func(v *vector) { v.Principal = "mallory" })
	reject("no principal", func(v *vector) { v.Principal = "" })
	sealed := func(name string, change func([]byte) []byte) {
		reject(name, func(v *vector) {
			ring, err := NewRing(v.key(t))
			if err != nil {
				t.Fatal(err)
			}
			codec := RingCodec(ring, PurposeState)
			payload, err := codec.Open(ctx, nil, v.Token[4:])
			if err != nil {
				t.Fatal(err)
			}
			raw, err := codec.Seal(ctx, nil, change(payload))
			if err != nil {
				t.Fatal(err)
			}
			v.Token = "ms1." + string(raw)
		})
	}
	sealed("sealed, but a cursor", func(p []byte) []byte { p[0] = 'C'; return p })
	sealed("sealed, but version 2", func(p []byte) []byte { p[1] = 2; return p })
	sealed("sealed, but an unknown flag", func(p []byte) []byte { p[2] |= 16; return p })
	sealed("sealed, but a state without its flag", func(p []byte) []byte { p[2] &^= 1; return p })
	sealed("sealed, but a state of elicit without a state", func(p []byte) []byte { p[2] = p[2]&^1 | 8; return p[:len(p)-len("step=1")] })
	sealed("sealed, but a kind with its highest bit", func(p []byte) []byte { p[headSize+33] |= 128; return p })
	sealed("sealed, but round 0", func(p []byte) []byte { clear(p[atRound : atRound+2]); return p })
	sealed("sealed, but cut within a question", func(p []byte) []byte { return p[:headSize+32+4] })

	for _, text := range []string{
		``, `null`, `{}`, ` {"a" : 1} `, `{"a":1}`, `1`, `1.0`, `10e-1`, `-0`, `0`, `0.05`, `-1200`, `1e400`, `1e-999999999999999999`,
		`9007199254740993`, `123456789012345678901234567890.5`, `""`, `"é"`, `"\u00e9"`, `"\ud800"`, `"\ud83d\ud83d\ude00"`, `"😀"`, `"\u0000\/\b"`,
		`[]`, `[[],{}]`, `[null,true,false]`, `{"b":1,"a":2}`, `{"":1,"é":2,"\ud7ff":3,"\uffff":4,"😀":5}`, `{"x":{"b":[{"d":1,"c":2}],"a":0},"w":1}`,
		strings.Repeat("[", 128) + strings.Repeat("]", 128),
		`{"\ud83d\ude00":1,"a":"\ud83d"}`, `{"b":{"d":[null,-0.0],"c":"\u0000"},"a\u0000":1,"a":2}`,
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\ud801":1000000,"\ud800":1}`, `{"\ud800":1,"\ud801":1000000}`, `{"a":[{"x\udc00":1}]}`, `{"\ud83d\n":1}`, `{`, ` `, `01`, `1e0000000000000000001`, `"\x"`, `[1,]`, "\"\t\"", "\ufeff{}",
		strings.Repeat("[", 129) + strings.Repeat("]", 129),
		`{"to":1,"To":2}`, `{"To":2,"to":1}`, `{"b":[{"A":1,"a":2}],"a":0}`, `{"ſ":1,"a":0,"s":2}`, `{"\u212a":1,"K":2}`, `{"É":1,"\u00e9":2}`, `{"aB":1,"ab_":2}`,
		`{"01":1,"1":2}`, `{"1":2,"01":1}`, `{"-0":1,"+0":2}`, `{"-1":1,"1":2,"":3,"0":4}`,
		`{"to":1,"To":2,"to":3}`, "1000" + strings.Repeat("0", 801) + "e-801", "0." + strings.Repeat("1", 798), "0." + strings.Repeat("1", 799), strings.Repeat("1", 801),
		`{"1":1,"1.0":2}`, `{"1.0":2,"1":1}`, `{".5":1,"5e-1":2}`, `{"10":1,"1_0":2,"a":3}`, `{"1":1,"_1":0}`, `{"a":1,"1e":2,"+-1":3,"1.1.1":4,"1":5,".":6,"0":7,"1e0e1":8}`,
		`{"null":1,"0":2}`, `{"1":1,"null":0}`, `{"0":1,"-0.0":2}`, `{"1":1,"0":2,"+1e-400":0}`, `{"9.9e-39":1,"-1e-39":2}`, `{"2e-38":1,"1e-38":2}`,
		`{"1e400":1,"1e38":2}`, `{"9.9e37":1,"1e38":2,"-1e38":0}`, `{"16777217":1,"16777216":2}`, `{"16777218":1,"16777216":2}`,
		`{"1.0000000596046447753906251":1,"1.0000000596046447753906249":2}`, `{"1.00000011920928955078125":1,"1.0000000596046447753906251":2}`,
		`{"1.00000011920928955078125":1,"1.0000000596046447753906249":2}`, `{"-1.00000011920928955078125":1,"-1.0000000596046447753906251":2}`,
		`{"2":1,"+Inf":0}`, `{"nan":1,"infinity":2}`, `{"nan":1,"a":2}`, `{"2":1,"0x1p4":0}`, `{"2":1,"0x1":0}`,
		`{"2":1,"` + strings.Repeat("1", 33) + `":0}`, `{"2":1,"` + strings.Repeat("1", 32) + `":0}`, `{"2":1,"` + strings.Repeat("1", 33) + `a":0}`,
		`{"2":1,"-0000000000000000000000000002.5e":0}`, `{"\u0031":1,"1\u002e0":0}`, `{"\u0041":1,"a":0}`,
	} {
		set.Digests = append(set.Digests, digestOf(digestVector{Text: &text}, []byte(text)))
	}
	for _, raw := range []string{"\"\xff\"", "\"\xed\xa0\x80\"", "\"\xc3\xa9\""} {
		set.Digests = append(set.Digests, digestOf(digestVector{TextHex: hex.EncodeToString([]byte(raw))}, []byte(raw)))
	}
	out, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, append(out, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func flip(c string) string {
	if c == "A" {
		return "B"
	}
	return "A"
}

func digestOf(d digestVector, text []byte) digestVector {
	if sum, err := strictjson.Sum(text); err != nil {
		d.Refused = true
	} else {
		d.Digest = hex.EncodeToString(sum[:])
	}
	return d
}
