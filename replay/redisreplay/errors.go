package redisreplay

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

// failure is an error of the Redis client with a text that is safe to log. The text of the
// original error may hold a secret.
type failure struct {
	text tripseal.PlainError
	err  error
}

func (f *failure) Error() string   { return f.text.Error() }
func (f *failure) Unwrap() []error { return []error{f.text, f.err} }

// explain returns err with a text that is safe to log. The text says what is wrong and, if
// that is not obvious, what to do.
func explain(err error) error {
	if isType[tripseal.PlainError](err) {
		return err
	}
	for _, known := range causes {
		if known.is(err) {
			return &failure{known.text, err}
		}
	}
	return &failure{"Redis failed in an unknown way", err}
}

// causes holds explanations of errors. The first entry that matches an error is used.
// Replies of a server come before network errors, because they are more precise.
var causes = []struct {
	is   func(error) bool
	text tripseal.PlainError
}{
	{redis.IsAuthError, "Redis refused the user or password"},
	{isForbidden, "the Redis user lacks a right: " +
		"it needs ~tripseal:used:* (or the prefix), +eval, +evalsha, +get, +set, +del, +pttl, +info and +time, " +
		"and for a cluster +cluster|slots, +asking and +command; a client that routes reads also needs +readonly"},
	{redis.IsOOMError, "Redis is out of memory: raise maxmemory, because uses are never evicted"},
	{redis.IsReadOnlyError, "this Redis is a read-only replica: connect to the master"},
	{redis.IsLoadingError, "Redis is still loading its data"},
	{isRedirect, "this Redis is part of a cluster: use redis.NewClusterClient"},
	{redis.IsClusterDownError, "the Redis cluster is down"},
	{redis.IsTryAgainError, "the Redis cluster is moving keys"},
	{redis.IsNoReplicasError, "Redis has too few replicas to write"},
	{func(err error) bool { return redis.HasErrorPrefix(err, "MISCONF") }, "Redis cannot write to its disk"},
	{isType[redis.Error], "Redis refused the command"},

	{is(redis.ErrClosed), "the Redis client was closed"},
	{is(redis.ErrPoolTimeout, redis.ErrPoolExhausted), "all connections to Redis are in use: raise the client's PoolSize"},
	{is(context.Canceled), "the caller gave up"},
	{func(err error) bool { return is(context.DeadlineExceeded)(err) || os.IsTimeout(err) }, "Redis did not answer in time"},
	{is(syscall.ECONNREFUSED), "nothing listens at the address of Redis"},
	{is(io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE), "Redis closed the connection"},
	{isType[*tls.CertificateVerificationError], "the certificate of the Redis server cannot be verified"},
	{isType[net.Error], "Redis cannot be reached"},
}

func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

func isType[T error](err error) bool { return errors.As(err, new(T)) }

// isForbidden reports whether the user lacks a right, for the script or for a command in it.
func isForbidden(err error) bool {
	return redis.IsPermissionError(err) || isType[redis.Error](err) &&
		(strings.Contains(err.Error(), "can't run this command") || strings.Contains(err.Error(), "ACL failure in script"))
}

// isRedirect reports whether err says that the key is on another server. Only the client of
// a single server returns such an error: a cluster client follows the redirect.
func isRedirect(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask
}
