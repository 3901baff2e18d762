package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// waiting runs eight tests at a time, because most of them wait for processes.
type waiting struct{ *testing.M }

func (w waiting) Run() int {
	flag.Parse()
	flag.Set("test.parallel", "8")
	return w.M.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(waiting{m}, map[string]func(){"tripseal": main, "release-server": releaseServer})
}

// releaseServer is a server over standard input and output. Its first argument selects what it does:
// "protected" and "unprotected" serve the demo's tools with and without tripseal, "ends" ends at
// once, and "hangs" never answers.
func releaseServer() {
	switch server := release.NewServer(); os.Args[1] {
	case "protected":
		boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			panic(err)
		}
		gosdk.Protect(server, boundary, &gosdk.Options{Logger: slog.New(slog.DiscardHandler)})
		fallthrough
	case "unprotected":
		server.Run(context.Background(), &mcp.StdioTransport{})
	case "ends":
	case "hangs":
		io.Copy(io.Discard, os.Stdin)
	}
}

// TestScripts runs the command as a user does. Each file in testdata/script is one scenario: it has
// input files and commands, and checks the output and the exit codes of the commands.
func TestScripts(t *testing.T) {
	if raceEnabled {
		t.Skip("scripts run without the race detector")
	}
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: scriptCommands,
		Condition: func(name string) (bool, error) {
			if name != "fips" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return strings.Contains(os.Getenv("GODEBUG"), "fips140=only"), nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GODEBUG", os.Getenv("GODEBUG"))
			return os.Chmod(env.WorkDir, 0o700) // because tripseal warns if other users can write to the folder, and some umasks let them
		},
	})
}

var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// exits CODE COMMAND… runs the command, and fails unless it ends with this exit code.
	"exits": func(ts *testscript.TestScript, neg bool, args []string) {
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		err = ts.Exec(args[1], args[2:]...)
		got := 0
		if err != nil {
			if got, err = strconv.Atoi(strings.TrimPrefix(err.Error(), "exit status ")); err != nil {
				ts.Fatalf("%v", err)
			}
		}
		if got != want {
			ts.Fatalf("exit code %d, not %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	},
	// keyfile FILE [FROM,UNTIL]… makes a file with one key for each pair FROM,UNTIL. Both are
	// durations from now: the key begins to seal at FROM, and stops opening at UNTIL, or never if
	// UNTIL is -. The variables KEY1, KEY2, … get the ids, and SECRET1, SECRET2, … the secrets.
	"keyfile": func(ts *testscript.TestScript, neg bool, args []string) {
		var d keyfile.Document
		now := time.Now().Truncate(time.Millisecond)
		for i, dates := range args[1:] {
			from, until, _ := strings.Cut(dates, ",")
			key := tripseal.GenerateKey()
			k := &keyfile.Key{ID: key.ID(), SealsFrom: now.Add(duration(ts, from)), Secret: keyfile.Plain(key)}
			k.Made = k.SealsFrom
			if until != "-" {
				k.OpensUntil = now.Add(duration(ts, until))
			}
			d.Add(k)
			ts.Setenv(fmt.Sprintf("KEY%d", i+1), key.ID().String())
			ts.Setenv(fmt.Sprintf("SECRET%d", i+1), key.Reveal())
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), d.Bytes(), 0o600))
	},
	// env-ids FILE sets the variables KEY1, KEY2, … to the ids in the file.
	"env-ids": func(ts *testscript.TestScript, neg bool, args []string) {
		for i, id := range regexp.MustCompile(`(?m)^(?:key|revoked) ([0-9a-f]{8}) `).FindAllStringSubmatch(ts.ReadFile(args[0]), -1) {
			ts.Setenv(fmt.Sprintf("KEY%d", i+1), id[1])
		}
	},
	// rawkey VARIABLE hex|base64 TOKEN makes a random key, and sets a variable to the key in hex or
	// base64, the form in which secret managers give keys. It also seals a token with the key, and
	// writes the token to the file TOKEN.
	"rawkey": func(ts *testscript.TestScript, neg bool, args []string) {
		secret := make([]byte, 32)
		rand.Read(secret)
		key, err := tripseal.NewKey(secret)
		ts.Check(err)
		encode := map[string]func([]byte) string{"hex": hex.EncodeToString, "base64": base64.StdEncoding.EncodeToString}[args[1]]
		ts.Setenv(args[0], encode(secret))
		var d keyfile.Document
		now := time.Now().Truncate(time.Millisecond)
		d.Add(&keyfile.Key{ID: key.ID(), Made: now, SealsFrom: now, Secret: keyfile.Plain(key)})
		file := ts.MkAbs("rawkey")
		ts.Check(os.WriteFile(file, d.Bytes(), 0o600))
		mint(ts, neg, []string{file, args[2], "state"})
		ts.Check(os.Remove(file))
	},
	// mint FILE TOKEN KIND seals a token for alice's call of deploy, and writes it to the file
	// TOKEN. FILE has the keys. For the kinds, see the function mint.
	"mint": mint,
	// nosecret FILE… checks that the last command printed no secret of these files of keys.
	"nosecret": func(ts *testscript.TestScript, neg bool, args []string) {
		for _, name := range args {
			for _, secret := range regexp.MustCompile(`secret=(\S+)`).FindAllStringSubmatch(ts.ReadFile(name), -1) {
				for _, printed := range []string{"stdout", "stderr"} {
					if strings.Contains(ts.ReadFile(printed), secret[1][13:40]) {
						ts.Fatalf("a secret of %s is in %s", name, printed)
					}
				}
			}
		}
	},
	// identity FILE makes an identity for the tool age, and writes it to a file. It sets RECIPIENT
	// to the recipient of the identity.
	"identity": func(ts *testscript.TestScript, neg bool, args []string) {
		identity, err := age.GenerateX25519Identity()
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("# made for a test\n"+identity.String()+"\n"), 0o600))
		ts.Setenv("RECIPIENT", identity.Recipient().String())
	},
	// mode FILE WANT checks the mode of a file.
	"mode": func(ts *testscript.TestScript, neg bool, args []string) {
		info, err := os.Stat(ts.MkAbs(args[0]))
		ts.Check(err)
		if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
			ts.Fatalf("mode %s, not %s", got, args[1])
		}
	},
	// alone FOLDER checks that a folder has exactly one file, so no other file was left behind.
	"alone": func(ts *testscript.TestScript, neg bool, args []string) {
		entries, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*"))
		hidden, _ := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), ".*"))
		ts.Check(err)
		if len(entries)+len(hidden) != 1 {
			ts.Fatalf("left behind: %v %v", entries, hidden)
		}
	},
}

func duration(ts *testscript.TestScript, text string) time.Duration {
	d, err := time.ParseDuration(text)
	ts.Check(err)
	return d
}

func mint(ts *testscript.TestScript, neg bool, args []string) {
	ctx := context.Background()
	d, err := keyfile.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	var keys []tripseal.Key
	sealer := d.Schedule().SealerAt(time.Now())
	for _, k := range d.Keys() {
		key, err := k.Open(ctx, nil)
		ts.Check(err)
		switch {
		case k == sealer:
			keys = slices.Insert(keys, 0, key)
		case k.Opens(time.Now()):
			keys = append(keys, key)
		}
	}
	ring, err := tripseal.NewRing(keys...)
	ts.Check(err)
	request := tripseal.Request{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"service":"frontend"}`), Principal: tripseal.User("alice")}
	var token string
	switch args[2] {
	case "state", "nobody", "binary", "sdk", "sdk-plain":
		boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "release.example.com"})
		ts.Check(err)
		if args[2] == "nobody" {
			request.Principal = nil
		}
		info := &auth.TokenInfo{UserID: "alice"}
		switch args[2] {
		case "sdk":
			info.Extra = map[string]any{"iss": "https://id.example.com"}
			fallthrough
		case "sdk-plain":
			alice, err := gosdk.TokenUser(info)
			ts.Check(err)
			request.Principal = tripseal.User(alice)
		}
		round, err := boundary.Open(ctx, request, "")
		ts.Check(err)
		state := "step=1&traffic=10"
		if args[2] == "binary" {
			state = "\x00\x01\x02\xff\xfea"
		}
		text := &state
		if args[2] == "nobody" {
			text = nil
		}
		token, err = boundary.Seal(ctx, &round, text, tripseal.Question{Key: "confirm", Kind: tripseal.KindForm},
			tripseal.Question{Key: "pay", Kind: tripseal.KindURL})
		ts.Check(err)
	case "cursor", "public":
		boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "release.example.com"})
		ts.Check(err)
		cursors, err := cursor.New(boundary, cursor.Options{Epoch: "2"})
		ts.Check(err)
		page, err := cursors.Open(ctx, request, "")
		ts.Check(err)
		token, err = page.Next(ctx, cursor.NextPage{Position: []byte("order 17"), Shared: args[2] == "public"})
		ts.Check(err)
	case "handle":
		boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "release.example.com"})
		ts.Check(err)
		sessions, err := tripseal.NewHandles(boundary, "session", time.Hour)
		ts.Check(err)
		token, err = sessions.Seal(ctx, request.Principal, "session 7")
		ts.Check(err)
	default:
		ts.Fatalf("mint %q?", args[2])
	}
	if bytes.ContainsAny([]byte(token), " \n") {
		ts.Fatalf("a token with white space")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(token+"\n"), 0o600))
	ts.Setenv("TOKEN", token)
}
