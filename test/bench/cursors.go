package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// cursorComparison measures what it takes to serve a page of a list: to open its cursor, and to
// issue the cursor of the next page.
func cursorComparison() comparison {
	const size = 64
	position := strings.Repeat("x", size)
	return comparison{
		title:      fmt.Sprintf("a page: open its cursor, issue the next; %d B of position", size),
		contenders: []contender{floor(position), nativeCursor(position)},
	}
}

func nativeCursor(position string) contender {
	ctx := context.Background()
	boundary, err := tripseal.New(tripseal.Config{Keys: ring(tripseal.GenerateKey()), Audience: audience})
	check(err)
	cursors, err := cursor.New(boundary, cursor.Options{})
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
