// Package ready_test checks the files in deploy that users load as they are: alerts, a board,
// manifests and a unit of systemd. They must fit what the code exports and accepts.
//
// Some tests need promtool, redis-server or systemd-analyze. A test is skipped if its program is
// missing. test/ready/run installs all three programs, and fails if a test is skipped.
package ready_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

var temporary string // a folder that is removed at the end

// quiet is a logger for the client of Redis. It writes nothing.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	var err error
	if temporary, err = os.MkdirTemp("", "ready"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(temporary)
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deployed returns the text of a file in the folder deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(name)))
	must(t, err)
	return string(text)
}

// build builds the command tripseal, once.
var build = sync.OnceValues(func() (string, error) {
	name := filepath.Join(temporary, "tripseal")
	out, err := exec.Command("go", "build", "-o", name, "github.com/tripseal/tripseal/cmd/tripseal").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return name, err
})

// tripseal returns the command with these arguments.
func tripseal(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	name, err := build()
	must(t, err)
	return exec.CommandContext(t.Context(), name, args...)
}

// newKeys writes a new file of keys.
func newKeys(t *testing.T, name string) {
	t.Helper()
	if out, err := tripseal(t, "keys", "new", name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// tool returns the path of a program. The given environment variable can name another program
// instead. The test is skipped if there is no such program.
func tool(t *testing.T, variable, name string) string {
	t.Helper()
	if other := os.Getenv(variable); other != "" {
		name = other
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: install it, or name it in %s", name, variable)
	}
	return path
}

// notice fails the test unless one of the found mistakes contains the wanted text.
func notice(t *testing.T, what string, wrong []string, want string) {
	t.Helper()
	if !slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, want) }) {
		t.Errorf("%s: %q, want %q", what, wrong, want)
	}
}

// replaced returns a text in which one part is replaced. The part must be there.
func replaced(t *testing.T, text, old, new string) string {
	t.Helper()
	changed := strings.Replace(text, old, new, 1)
	if changed == text {
		t.Errorf("there is no %q", old)
	}
	return changed
}
