package compat_test

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/sealtest"
)

// TestTwoAccountsCannotForgeAnMcpDState tries an attack on the signed mode of mcp.d. There, a tag
// binds a token to a user. By default, the tag is a MAC of the user's name, and everybody can read it
// in the token. Payloads are signed with the same key.
//
// So an attacker who has one account writes a payload: any state, and the tag of that account. The
// attacker then creates a second account, whose name is this payload. The tag of the second account
// is the signature of the payload.
func TestTwoAccountsCannotForgeAnMcpDState(t *testing.T) {
	for _, bind := range []compat.McpDBinding{compat.BindSubject, compat.BindSubjectAndTool} {
		for _, space := range []string{"", " ", "\t", "\r\n", " \n\t "} {
			boundary := mcpdBoundary(t, compat.McpDOptions{Bind: bind})
			mine := tagIn(t, sealFor(t, boundary, "mallory"))
			payload := space + fmt.Sprintf(`{"s":"approved=yes","b":"%s","exp":%d}`, mine, time.Now().Add(time.Hour).Unix())

			request := requestOf(payload)
			round, err := boundary.Open(t.Context(), request, "")
			if err != nil {
				t.Fatal(err)
			}
			state := "harmless"
			token, err := boundary.Seal(t.Context(), &round, &state)
			if err == nil {
				// This is how the second account would use the tag.
				signed := "v1." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + rawTag(t, tagIn(t, token))
				_, err := boundary.Open(t.Context(), requestOf("mallory"), signed)
				t.Fatalf("a token was sealed for a user called %q; the forged one opens: %v", payload, err == nil)
			}
			// mcp.d itself would seal a token for the second account. Our boundary must not open
			// that token.
			if _, err := boundary.Open(t.Context(), request, mcpdSigned(t, payload, time.Now().Add(time.Minute))); err == nil {
				t.Fatalf("a token opens for a user called %q", payload)
			}
		}
	}
}

// TestTheAttackWouldWork shows that TestTwoAccountsCannotForgeAnMcpDState can fail. Here, mcp.d seals
// a token for the second account. With the tag in that token, the attacker forges a token that opens.
func TestTheAttackWouldWork(t *testing.T) {
	boundary := mcpdBoundary(t, compat.McpDOptions{})
	mine := tagIn(t, sealFor(t, boundary, "mallory"))
	payload := fmt.Sprintf(`{"s":"approved=yes","b":"%s","exp":%d}`, mine, time.Now().Add(time.Hour).Unix())
	token := mcpdSigned(t, payload, time.Now().Add(time.Minute)) // what mcp.d seals for that name
	forged := "v1." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + rawTag(t, tagIn(t, token))
	round, err := boundary.Open(t.Context(), requestOf("mallory"), forged)
	if err != nil {
		t.Fatal("the forgery does not open, so the test of it proves nothing")
	}
	if state, _ := round.State(); state != "approved=yes" {
		t.Errorf("opened as %q", state)
	}
}

func TestZeroBytesInNamesAreRefused(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		boundary := mcpdBoundary(t, compat.McpDOptions{Bind: compat.BindSubjectAndTool, Encrypted: encrypted})
		for _, request := range []tripseal.Request{
			{Method: "tools/call", Target: "c", Principal: tripseal.User("a\x00b")},
			{Method: "tools/call", Target: "b\x00c", Principal: tripseal.User("a")},
			{Method: "prompts/get", Target: "\x00", Principal: tripseal.User("a")},
		} {
			round, err := boundary.Open(t.Context(), request, "")
			if err != nil {
				t.Fatal(err)
			}
			state := "s"
			if token, err := boundary.Seal(t.Context(), &round, &state); err == nil {
				t.Errorf("sealed for %q: %s", request.Target, token)
			}
		}
	}
	// Encrypted tokens show no tag, so a name in braces does no harm.
	boundary := mcpdBoundary(t, compat.McpDOptions{Encrypted: true})
	sealFor(t, boundary, "{alice}")
}

func mcpdBoundary(t *testing.T, options compat.McpDOptions) *tripseal.Boundary {
	t.Helper()
	boundary, err := tripseal.New(tripseal.Config{
		Format:   must2(t)(compat.McpD(secret, options)),
		Waive:    tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimQuestions | tripseal.ClaimFlow,
		Audience: "test",
		Logger:   sealtest.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

func requestOf(user string) tripseal.Request {
	return tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User(user)}
}

func sealFor(t *testing.T, boundary *tripseal.Boundary, user string) string {
	t.Helper()
	round, err := boundary.Open(t.Context(), requestOf(user), "")
	if err != nil {
		t.Fatal(err)
	}
	state := "step=1"
	token, err := boundary.Seal(t.Context(), &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// tagIn reads the tag that a signed token shows.
func tagIn(t *testing.T, token string) string {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(payload), `"b":"`)
	if !ok || len(rest) < 64 {
		t.Fatalf("no tag in %s", payload)
	}
	return rest[:64]
}

func rawTag(t *testing.T, tag string) string {
	t.Helper()
	raw, err := hex.DecodeString(tag)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// mcpdSigned returns a token as mcp.d signs it. The token is bound to the subject, which may be any
// text.
func mcpdSigned(t *testing.T, subject string, expires time.Time) string {
	t.Helper()
	key, err := hkdf.Key(sha256.New, secret, nil, "mcp.requestState bind-hmac key", 32)
	if err != nil {
		t.Fatal(err)
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	payload := fmt.Sprintf(`{"s":"harmless","b":"%x","exp":%d}`, mac(subject), expires.Unix())
	return "v1." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + base64.RawURLEncoding.EncodeToString(mac(payload))
}
