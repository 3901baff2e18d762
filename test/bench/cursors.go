package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat/atd"
	"github.com/tripseal/tripseal/cursor"
)

// cursorComparison compares ways to serve a page of a list. To serve a page means to open its
// cursor and to issue the cursor of the next page.
func cursorComparison() comparison {
	const size = 64
	position := strings.Repeat("x", size)
	c := comparison{
		title:      fmt.Sprintf("a page: open its cursor, issue the next; %d B of position", size),
		contenders: []contender{floor(position), nativeCursor(position), jwtCursor(position), goATDCursor(position)},
	}
	params := map[string]string{"key": hex.EncodeToString(secret), "tool": target, "caller": principal, "state": hex.EncodeToString([]byte(position))}
	nanos, err := startProgram(filepath.Join(cache, "../peers/bench/target/release/atd-peer"), []string{"bench"}, params)
	if err != nil {
		fmt.Fprintf(os.Stderr, "left out, the ATD runtime is not installed (test/interop/run installs it): %v\n", err)
		return c
	}
	c.remotes = []remote{{"the ATD runtime, in Rust (signed, readable)", 0, nanos}}
	return c
}

func nativeCursor(position string) contender {
	ctx := context.Background()
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	check(err)
	cursors, err := cursor.New(cursor.Config{Keys: ring, Audience: audience})
	check(err)
	page, err := cursors.Open(ctx, request, "")
	check(err)
	next := cursor.NextPage{Position: []byte(position)}
	token, err := page.Next(ctx, next)
	check(err)
	return contender{"tripseal/cursor", len(token), func() {
		page, err := cursors.Open(ctx, request, token)
		check(err)
		_, err = page.Next(ctx, cursor.NextPage{Position: page.Position()})
		check(err)
	}}
}

// cursorClaims are the claims of a cursor in the form of a JWT.
type cursorClaims struct {
	jwt.RegisteredClaims
	Method    string `json:"m"`
	Target    string `json:"t"`
	Arguments string `json:"a"`
	Page      int    `json:"n"`
	Position  string `json:"p"`
}

func jwtCursor(position string) contender {
	seal := func(c cursorClaims) string {
		now := time.Now()
		c.IssuedAt, c.ExpiresAt = jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(time.Hour))
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(secret)
		check(err)
		return token
	}
	token := seal(cursorClaims{
		jwt.RegisteredClaims{Audience: jwt.ClaimStrings{audience}, Subject: principal}, method, target, "", 1, position,
	})
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	keyFunc := func(*jwt.Token) (any, error) { return secret, nil }
	return contender{"golang-jwt HS256 (signed, readable)", len(token), func() {
		var c cursorClaims
		_, err := parser.ParseWithClaims(token, &c, keyFunc)
		check(err)
		if c.Method != method || c.Target != target || c.Subject != principal {
			panic(errWrong)
		}
		c.Page++
		seal(c)
	}}
}

func goATDCursor(position string) contender {
	issuer, err := atd.NewIssuer(secret, atd.Options{})
	check(err)
	request := atd.Request{Tool: target, Caller: principal}
	token, err := issuer.Issue(request, atd.Page{Index: 1, State: []byte(position)})
	check(err)
	return contender{"tripseal/compat/atd (signed, readable)", len(token), func() {
		page, err := issuer.Open(request, token)
		check(err)
		_, err = issuer.Issue(request, atd.Page{Index: page.Index + 1, State: page.State})
		check(err)
	}}
}
