package main

import (
	"bytes"
	"context"
	"errors"

	"github.com/tripseal/tripseal"
)

// seal puts a digest of the arguments into the token, and open compares that digest with
// the digest of the arguments in its binding. A boundary uses a format in the same way.

func seal(ctx context.Context, format tripseal.Format, binding tripseal.Binding, claims tripseal.Claims) (token string, err error) {
	if claims.Arguments, err = format.Digest(&binding); err != nil {
		return "", err
	}
	return format.Seal(ctx, &binding, &claims)
}

func open(ctx context.Context, format tripseal.Format, binding tripseal.Binding, token string) (tripseal.Claims, error) {
	claims, err := format.Open(ctx, &binding, token)
	if err != nil {
		return tripseal.Claims{}, err
	}
	digest, err := format.Digest(&binding)
	if err == nil && !bytes.Equal(digest, claims.Arguments) {
		err = errors.New("sealed for other arguments")
	}
	return claims, err
}
