package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"time"

	paseto "aidanwoods.dev/go-paseto"
	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/securecookie"
)

// claims is what a careful author would put into a hand-made token.
type claims struct {
	Issued    int64    `json:"iat"`
	Expires   int64    `json:"exp"`
	Method    string   `json:"m"`
	Target    string   `json:"t"`
	Arguments string   `json:"a"`
	Audience  string   `json:"aud"`
	Principal string   `json:"p"`
	Flow      string   `json:"f"`
	FlowStart int64    `json:"fs"`
	Round     int      `json:"r"`
	Questions []string `json:"q"`
	State     string   `json:"s"`
}

var errWrong = errors.New("wrong claims")

func newClaims(state string) claims {
	now := time.Now().Unix()
	return claims{
		Issued: now, Expires: now + 600, Method: method, Target: target, Arguments: "RBNvo1WzZ4oRRq0W9-hknQ", Audience: audience,
		Principal: hashed(principal, flowID), Flow: flowID, FlowStart: now, Round: 1, Questions: []string{question + ":form"}, State: state,
	}
}

const flowID = "q2Vqf0pQTRKbMdwl2sGS3A"

// hashed returns a salted digest of 16 bytes, so that no token holds a user's name.
func hashed(text, salt string) string {
	sum := sha256.Sum256([]byte(salt + text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// next checks the claims of one round, and returns the claims of the following round.
func (c claims) next() claims {
	now := time.Now().Unix()
	if c.Method != method || c.Target != target || c.Audience != audience || c.Principal != hashed(principal, c.Flow) || now >= c.Expires || c.Issued > now+60 {
		panic(errWrong)
	}
	c.Issued, c.Expires, c.Round = now, now+600, c.Round+1
	return c
}

// naive encrypts JSON claims with AES-GCM, as hand-written code often does: with two functions,
// encrypt and decrypt, that set up the cipher from the key in each call.
func naive(state string) contender {
	seal := func(c claims) string {
		payload, err := json.Marshal(c)
		check(err)
		return base64.RawURLEncoding.EncodeToString(encrypt(secret, payload))
	}
	token := seal(newClaims(state))
	return contender{"naive: encoding/json and AES-GCM by hand", len(token), func() {
		blob, err := base64.RawURLEncoding.DecodeString(token)
		check(err)
		var c claims
		check(json.Unmarshal(decrypt(secret, blob), &c))
		seal(c.next())
	}}
}

func encrypt(key, plaintext []byte) []byte {
	block, err := aes.NewCipher(key)
	check(err)
	gcm, err := cipher.NewGCM(block)
	check(err)
	nonce := make([]byte, gcm.NonceSize())
	_, err = io.ReadFull(rand.Reader, nonce)
	check(err)
	return gcm.Seal(nonce, nonce, plaintext, nil)
}

func decrypt(key, blob []byte) []byte {
	block, err := aes.NewCipher(key)
	check(err)
	gcm, err := cipher.NewGCM(block)
	check(err)
	plaintext, err := gcm.Open(nil, blob[:gcm.NonceSize()], blob[gcm.NonceSize():], nil)
	check(err)
	return plaintext
}

// jwtClaims has the same fields as claims, in a type that golang-jwt can check.
type jwtClaims struct {
	jwt.RegisteredClaims
	Method    string   `json:"m"`
	Target    string   `json:"t"`
	Arguments string   `json:"a"`
	Flow      string   `json:"f"`
	FlowStart int64    `json:"fs"`
	Round     int      `json:"r"`
	Questions []string `json:"q"`
	State     string   `json:"s"`
}

func goJWT(state string) contender {
	seal := func(c jwtClaims) string {
		now := time.Now()
		c.IssuedAt, c.ExpiresAt = jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(10*time.Minute))
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(secret)
		check(err)
		return token
	}
	c := newClaims(state)
	token := seal(jwtClaims{
		jwt.RegisteredClaims{Audience: jwt.ClaimStrings{audience}, Subject: c.Principal},
		c.Method, c.Target, c.Arguments, c.Flow, c.FlowStart, c.Round, c.Questions, c.State,
	})
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithAudience(audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	keyFunc := func(*jwt.Token) (any, error) { return secret, nil }
	return contender{"golang-jwt HS256 (signed, readable)", len(token), func() {
		var c jwtClaims
		_, err := parser.ParseWithClaims(token, &c, keyFunc)
		check(err)
		if c.Method != method || c.Target != target || c.Subject != hashed(principal, c.Flow) {
			panic(errWrong)
		}
		c.Round++
		seal(c)
	}}
}

func secureCookie(state string) contender {
	codec := securecookie.New(secret, secret)
	codec.MaxLength(1 << 16)
	codec.SetSerializer(securecookie.JSONEncoder{})
	seal := func(c claims) string {
		token, err := codec.Encode("state", c)
		check(err)
		return token
	}
	token := seal(newClaims(state))
	return contender{"gorilla/securecookie", len(token), func() {
		var c claims
		check(codec.Decode("state", token, &c))
		seal(c.next())
	}}
}

func goJOSE(state string) contender {
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.DIRECT, Key: secret}, nil)
	check(err)
	seal := func(c claims) string {
		token, err := josejwt.Encrypted(encrypter).Claims(c).Serialize()
		check(err)
		return token
	}
	token := seal(newClaims(state))
	return contender{"go-jose JWE", len(token), func() {
		parsed, err := josejwt.ParseEncrypted(token, []jose.KeyAlgorithm{jose.DIRECT}, []jose.ContentEncryption{jose.A256GCM})
		check(err)
		var c claims
		check(parsed.Claims(secret, &c))
		seal(c.next())
	}}
}

func goPaseto(state string) contender {
	key, err := paseto.V4SymmetricKeyFromBytes(secret)
	check(err)
	seal := func(c claims) string {
		now := time.Now()
		token := paseto.NewToken()
		token.SetIssuedAt(now)
		token.SetNotBefore(now)
		token.SetExpiration(now.Add(10 * time.Minute))
		token.SetAudience(audience)
		token.SetSubject(c.Principal)
		check(token.Set("c", c))
		return token.V4Encrypt(key, nil)
	}
	token := seal(newClaims(state))
	parser := paseto.NewParserForValidNow()
	parser.AddRule(paseto.ForAudience(audience))
	return contender{"go-paseto v4.local", len(token), func() {
		parsed, err := parser.ParseV4Local(key, token, nil)
		check(err)
		var c claims
		check(parsed.Get("c", &c))
		seal(c.next())
	}}
}
