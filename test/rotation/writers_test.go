package rotation_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal/internal/keyfile"
)

// TestThreeWritersAndManyKillsLoseNoKey lets three writers rotate one file of keys at the same time,
// and kills 150 of their commands at random times. Every key that a command reported must be in the
// file, and the file must load after each kill.
func TestThreeWritersAndManyKillsLoseNoKey(t *testing.T) {
	if testing.Short() {
		t.Skip("runs hundreds of processes")
	}
	const writers, kills, changes = 3, 50, 20 // of each writer
	dir := t.TempDir()
	command, path := filepath.Join(dir, "tripseal"), filepath.Join(dir, "folder", "keys")
	if out, err := exec.Command("go", "build", "-o", command, "github.com/tripseal/tripseal/cmd/tripseal").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must(t, exec.Command("mkdir", filepath.Dir(path)).Run())
	must(t, exec.Command(command, "keys", "new", path).Run())
	var mu sync.Mutex
	var added []string
	refused := 0
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for n := range kills + changes {
				ctx, cancel := context.Background(), func() {}
				if n < kills {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(40))*time.Millisecond)
				}
				out, err := exec.CommandContext(ctx, command, "keys", "rotate", path, "--in", "0s", "--json").Output()
				cancel()
				var view struct{ Added string }
				mu.Lock()
				switch {
				case err == nil && json.Unmarshal(out, &view) == nil && view.Added != "":
					added = append(added, view.Added)
				case n >= kills:
					refused++ // another writer made a key in the same millisecond, or later
				}
				mu.Unlock()
				if _, err := keyfile.Read(path); err != nil {
					t.Errorf("the file cannot be read: %v", err)
				}
			}
		})
	}
	group.Wait()
	must(t, exec.Command(command, "keys", "rotate", path, "--in", "1h").Run()) // also removes what killed commands left
	d, err := keyfile.Read(path)
	must(t, err)
	in := make(map[string]bool)
	for _, k := range d.Keys() {
		in[k.ID.String()] = true
	}
	for _, id := range added {
		if !in[id] {
			t.Errorf("key %s is lost", id)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if len(added) < writers*changes/2 {
		t.Errorf("only %d changes, %d refused", len(added), refused)
	}
	t.Logf("%d keys reported, %d in the file, %d commands refused", len(added), len(in), refused)
}
