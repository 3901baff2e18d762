package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// atEnd has the functions that cleanUp calls after all measurements. cleanUp begins with the
// function that was added last.
var atEnd []func()

func cleanUp() {
	for _, f := range slices.Backward(atEnd) {
		f()
	}
	atEnd = nil
}

// startRedis starts a Redis server in a directory of its own. cleanUp ends the server
// and removes the directory.
func startRedis() (*redis.Client, error) {
	name := os.Getenv("TRIPSEAL_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(addr)
	dir, err := os.MkdirTemp("", "tripseal-bench-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "")
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	atEnd = append(atEnd, func() {
		client.Close()
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = client.Ping(context.Background()).Err(); err == nil {
			return client, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("it does not start: %w", err)
		}
	}
}
