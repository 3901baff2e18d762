package compat_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
)

// ownFormat is the format in which a service has sealed its states so far: JSON in base64, and
// an HMAC of that text. Its tokens have no prefix.
type ownFormat struct{ secret []byte }

type ownPayload struct {
	State   string `json:"state"`
	User    string `json:"user"`
	Expires int64  `json:"expires"`
}

func (f ownFormat) mac(body string) string {
	mac := hmac.New(sha256.New, f.secret)
	mac.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (f ownFormat) Prefix() string                           { return "" }
func (f ownFormat) Carries() tripseal.ClaimSet               { return tripseal.ClaimUser }
func (f ownFormat) Digest(*tripseal.Binding) ([]byte, error) { return nil, nil }

func (f ownFormat) Seal(_ context.Context, binding *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	payload, err := json.Marshal(ownPayload{claims.State, binding.User, claims.Expires})
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(payload)
	return body + "." + f.mac(body), nil
}

func (f ownFormat) Open(_ context.Context, binding *tripseal.Binding, token string) (tripseal.Claims, error) {
	body, mac, _ := strings.Cut(token, ".")
	if !hmac.Equal([]byte(mac), []byte(f.mac(body))) {
		return tripseal.Claims{}, tripseal.ReasonForged
	}
	var payload ownPayload
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(text, &payload) != nil {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	if payload.User != binding.User {
		return tripseal.Claims{}, tripseal.ReasonUser
	}
	return tripseal.Claims{State: payload.State, HasState: true, Expires: payload.Expires}, nil
}

// A service that seals its states by itself moves to native tokens, in two roll-outs.
// One line tests the format: sealtest.TestFormat(t, ownFormat{secret}).
func Example_ownFormat() {
	secret := []byte("what the service has signed its states with")
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		log.Fatal(err)
	}

	own := ownFormat{secret}
	ownLacks := tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimQuestions | tripseal.ClaimFlow

	// Roll-out 1: open both formats. Seal in the old one: some replicas cannot open native tokens yet.
	first, err := tripseal.New(tripseal.Config{
		Format:   own,
		Waive:    ownLacks,
		AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(ring)}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		log.Fatal(err)
	}

	// Roll-out 2: open both formats, seal native tokens.
	second, err := tripseal.New(tripseal.Config{
		Keys:     ring,
		AlsoOpen: []tripseal.Accepted{{Format: own, Waive: ownLacks}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}
	before, _ := own.Seal(ctx, &tripseal.Binding{User: "alice"}, &tripseal.Claims{State: "step=1", Expires: time.Now().Add(time.Minute).UnixMilli()})
	round, err := first.Open(ctx, request, before)
	if err != nil {
		log.Fatal(err)
	}
	state, _ := round.State()
	fmt.Println("opened:", state)
	state = "step=2"
	token, _ := first.Seal(ctx, &round, &state)
	round, err = second.Open(ctx, request, token)
	if err != nil {
		log.Fatal(err)
	}
	state, _ = round.State()
	fmt.Println("opened:", state)
	token, _ = second.Seal(ctx, &round, &state)
	fmt.Println("sealed:", strings.SplitAfter(token, ".")[0])
	// Output:
	// opened: step=1
	// opened: step=2
	// sealed: ms1.
}
