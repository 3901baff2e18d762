package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
	"github.com/tripseal/tripseal/sealtest"
)

// vector is one case that was made by running a peer. All files have cases of this type. Each kind
// of case uses only some of the fields.
type vector struct {
	ID, Name, Kind, Expect      string
	Malleable, Unsafe, Advisory bool

	Mint, Verify  *side
	Token         string
	OriginalToken string `json:"original_token"`
	VerifyMode    string `json:"verify_mode"`
	WireState     any    `json:"wire_request_state_json"`

	// What the peer opened.
	State            *string
	StateJSON        *string `json:"state_json"`
	StateHex         *string `json:"state_hex"`
	PayloadJSON      *string `json:"payload_json"`
	PayloadUndefined bool    `json:"payload_undefined"`
	PayloadHex       *string `json:"payload_hex"`

	MintKeys      []string `json:"mint_keys_hex"`
	OpenKeys      []string `json:"open_keys_hex"`
	PayloadInHex  string   `json:"payload_in_hex"`
	Method        string
	ArgumentsJSON *string `json:"arguments_json"`
	ArgumentsNote string  `json:"arguments_note"`
	ParamsJSON    string  `json:"params_json"`
	CanonicalJSON string  `json:"canonical_json"`
	Target        string
	Digest        string
	EnvelopeJSON  *string `json:"envelope_json"`
	Internals     *internals

	ArgsJSON       string `json:"args_json"`
	Serialized     string
	FingerprintHex string `json:"args_fingerprint_hex"`
}

// side is the input of one side of a round trip: the side that mints, or the side that verifies.
type side struct {
	KeyHex      string   `json:"key_hex"`
	KeysHex     []string `json:"keys_hex"`
	Now         float64
	TTL         *float64
	PayloadJSON *string `json:"payload_json"`
	Bind        *string
	BindTo      string `json:"bind_to"`
	Subject     string
	Tool        string
	State       *string
	StateJSON   *string `json:"state_json"`
	Method      string
	Target      string
	Digest      string
	ParamsJSON  string `json:"params_json"`
	Audience    *string
	Principal   *string
	Components  []*string `json:"access_token_components"`
	Crafted     any       `json:"crafted_envelope"`
}

type internals struct {
	EnvelopeJSON  *string `json:"envelope_json"`
	MACHex        string  `json:"mac_hex"`
	BindTag       string  `json:"bind_tag"`
	MaterialHex   *string `json:"bind_material_hex"`
	MACKeyHex     string  `json:"mac_subkey_hex"`
	AESKeyHex     string  `json:"aes_subkey_hex"`
	NonceHex      string  `json:"nonce_hex"`
	KeyIDHex      string  `json:"kid_hex"`
	AdditionalHex string  `json:"aad_hex"`
	Keys          []struct {
		KeyHex     string `json:"key_hex"`
		DerivedHex string `json:"derived_key_hex"`
		KeyIDHex   string `json:"kid_hex"`
	}
	Target         *string
	ArgsDigest     string `json:"args_digest"`
	CanonicalArgs  string `json:"canonical_args_json"`
	PrincipalClaim string `json:"principal_claim"`
	PrincipalSalt  string `json:"principal_salt_hex"`
}

// checkers has a function for each kind of case in each file. The function fails the test if an
// intermediate result differs from the peer's. It returns whether we accept the case and what we
// opened.
var checkers = map[string]map[string]func(*testing.T, *vector) verdict{
	"python-aesgcm.json":      {"codec": checkPythonCodec, "construct": checkPythonConstruct},
	"python-args-digest.json": {"args_digest": checkPythonArguments},
	"python-boundary.json":    {"boundary": checkPythonBoundary},
	"typescript-hmac.json": {"roundtrip": checkTypeScript, "mutated": checkTypeScript, "crafted": checkTypeScript,
		"mint_error": checkTypeScriptMintError},
	"mcpd-signed.json":    {"roundtrip": checkMcpD, "mutated": checkMcpD, "crafted": checkMcpD},
	"mcpd-encrypted.json": {"roundtrip": checkMcpD, "mutated": checkMcpD, "crafted": checkMcpD},
	"ruby-aesgcm.json": {"roundtrip": checkRuby, "mutated": checkRuby, "crafted": checkRuby,
		"seal_error": checkRubySealError, "args_digest": checkRubyArguments},
	"atd-cursor.json": {"fingerprint": checkATDFingerprint,
		"roundtrip": nil, "mutated": nil, "crafted": nil, "issue": nil}, // compat/atd checks these
}

// verdict is our result for a case.
type verdict struct {
	accepted bool
	opened   string // what we opened, if we accept the case; must equal want
	want     string
}

func vectorsDir() string {
	if dir := os.Getenv("TRIPSEAL_VECTORS"); dir != "" {
		return dir
	}
	return filepath.Join("testdata", "vectors")
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectorsDir(), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s: %v", vectorsDir(), err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		kinds, known := checkers[file]
		if !known {
			t.Errorf("%s: nothing here knows this file", file)
		}
		t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) { checkFile(t, path, kinds) })
	}
}

func checkFile(t *testing.T, path string, kinds map[string]func(*testing.T, *vector) verdict) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Peer, Version string
		Cases         []vector
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 || file.Peer == "" || file.Version == "" {
		t.Fatalf("%d cases, minted by the peer %q in version %q", len(file.Cases), file.Peer, file.Version)
	}
	counts := map[string]int{}
	for i := range file.Cases {
		c := &file.Cases[i]
		check, known := kinds[c.Kind]
		if !known {
			t.Errorf("%s: cases of the kind %q are unknown here", c.ID, c.Kind)
		}
		if check == nil {
			continue
		}
		counts[c.Kind]++
		t.Run(c.ID, func(t *testing.T) { judge(t, c, check(t, c)) })
	}
	var summary []string
	for kind, count := range counts {
		summary = append(summary, fmt.Sprintf("%d %s", count, kind))
	}
	slices.Sort(summary)
	t.Logf("%s: cases checked: %s", filepath.Base(path), strings.Join(summary, ", "))
}

// judge compares our result with the peer's. It allows only differences that the vector marks.
func judge(t *testing.T, c *vector, v verdict) {
	t.Helper()
	if c.Expect != "accept" && c.Expect != "reject" {
		t.Fatalf("%q: expects %q, which is unknown here", c.Name, c.Expect)
	}
	peerAccepts := c.Expect == "accept"
	switch {
	case c.Malleable || c.Unsafe:
		if v.accepted {
			t.Errorf("%q is accepted, and must not be", c.Name)
		}
		return
	case v.accepted && !peerAccepts:
		t.Errorf("%q is accepted, the peer rejects it", c.Name)
	case !v.accepted && peerAccepts && !c.Advisory:
		t.Errorf("%q is rejected, the peer accepts it", c.Name)
	}
	if v.accepted && v.opened != v.want {
		t.Errorf("%q opened as %.200q, want %.200q", c.Name, v.opened, v.want)
	}
}

// open opens a token at a given time, in a boundary that knows the format.
func open(t *testing.T, format tripseal.Format, now float64, binding tripseal.Binding, token string) (state string, hasState, ok bool) {
	t.Helper()
	boundary, err := tripseal.New(tripseal.Config{
		Keys:     tripseal.Ephemeral(),
		AlsoOpen: []tripseal.Accepted{{Format: format, Waive: everyClaim &^ format.Carries()}},
		Audience: binding.Audience,
		MaxState: 1 << 20,
		Logger:   sealtest.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	request := tripseal.Request{Method: binding.Method, Target: binding.Target, Arguments: binding.Arguments}
	if binding.User != "" {
		request.Principal = tripseal.User(binding.User)
	}
	// The bubble has only the code that needs the clock. Code that needs randomness stays outside,
	// because under FIPS 140-3 the source of randomness measures time.
	synctest.Test(t, func(t *testing.T) {
		sleepUntil(t, now)
		round, err := boundary.Open(t.Context(), request, token)
		if err == nil && !round.First() {
			ok = true
			state, hasState = round.State()
		}
	})
	return state, hasState, ok
}

const everyClaim = tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser |
	tripseal.ClaimQuestions | tripseal.ClaimFlow | tripseal.ClaimSingleUse

// sleepUntil moves the clock of a bubble to an instant.
func sleepUntil(t *testing.T, seconds float64) {
	t.Helper()
	wait := time.Until(time.UnixMilli(int64(seconds*1000 + 0.5)))
	if wait < 0 {
		t.Fatalf("the instant %v is before the bubble's clock begins", seconds)
	}
	time.Sleep(wait)
}

// textOf decodes the JSON text of a string, lone surrogates included.
func textOf(t *testing.T, text string) string {
	t.Helper()
	members := strictjson.ReadMembers(`{"":` + text + `}`)
	v, ok := members.Next()
	if !ok || !v.IsString() {
		t.Fatalf("%q is not the JSON text of a string", text)
	}
	return v.Text
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %.300q, want %.300q", what, got, want)
	}
}
