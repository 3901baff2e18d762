package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"log/slog"
	"strings"

	"github.com/tripseal/tripseal"
)

// All contenders seal tokens for the same request, with the same question.
const (
	method    = "tools/call"
	target    = "deploy"
	audience  = "deploy.example.com"
	principal = "alice@example.com"
	question  = "confirm"
)

var secret = []byte("thirty-two bytes of bench secret")

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func tokenContenders(size int) []contender {
	state := strings.Repeat("x", size)
	return []contender{
		floor(state),
		native(state),
		naive(state),
		goJWT(state),
		secureCookie(state),
		goJOSE(state),
		goPaseto(state),
	}
}

// floor does the least possible work: it encrypts and decrypts only the state, into buffers
// that already exist. It has no claims and no key ids, accepts any spelling of the base64
// text, and allocates nothing.
func floor(state string) contender {
	block, err := aes.NewCipher(secret)
	check(err)
	aead, err := cipher.NewGCMWithRandomNonce(block)
	check(err)
	plain := []byte(state)
	size := len(plain) + aead.Overhead()
	sealed, opened := make([]byte, 0, size), make([]byte, 0, size)
	text, decoded := make([]byte, base64.RawURLEncoding.EncodedLen(size)), make([]byte, size)
	return contender{"floor: AES-GCM and base64", len(text), func() {
		blob := aead.Seal(sealed, nil, plain, nil)
		base64.RawURLEncoding.Encode(text, blob)
		n, err := base64.RawURLEncoding.Decode(decoded, text)
		check(err)
		_, err = aead.Open(opened, nil, decoded[:n], nil)
		check(err)
	}}
}

func boundary(source tripseal.KeySource) *tripseal.Boundary {
	b, err := tripseal.New(tripseal.Config{Keys: source, Audience: audience, Logger: slog.New(slog.DiscardHandler)})
	check(err)
	return b
}

// request has no arguments, because the digest of arguments is measured separately.
var request = tripseal.Request{Method: method, Target: target, Principal: tripseal.User(principal)}

func sealFirst(b *tripseal.Boundary, state string, questions ...tripseal.Question) string {
	ctx := context.Background()
	round, err := b.Open(ctx, request, "")
	check(err)
	token, err := b.Seal(ctx, &round, &state, questions...)
	check(err)
	return token
}

func native(state string) contender {
	ctx := context.Background()
	b := boundary(ring(tripseal.GenerateKey()))
	questions := []tripseal.Question{{Key: question, Kind: tripseal.KindForm}}
	token := sealFirst(b, state, questions...)
	return contender{"tripseal", len(token), func() {
		round, err := b.Open(ctx, request, token)
		check(err)
		opened, _ := round.State()
		_, err = b.Seal(ctx, &round, &opened, questions...)
		check(err)
	}}
}
