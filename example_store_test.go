package tripseal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/tripseal/tripseal"
)

// folderStore remembers each used token as a file in a folder that all processes of one
// machine share. If several processes create the same file, the operating system lets only one
// of them succeed. A database does the same with INSERT … ON CONFLICT DO NOTHING. After a
// crash that may have lost writes, the store must refuse every token whose use.Issued is before the
// crash.
type folderStore struct{ path string }

func (s folderStore) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err // nothing was recorded
	}
	name := fmt.Sprintf("%x-%d", use.Flow, use.Round) // Flow and Round identify the token
	file, err := os.OpenFile(filepath.Join(s.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil // used before
	}
	if err != nil {
		return false, err // after an error, the boundary rejects the token
	}
	_, err = file.WriteString(use.Until.UTC().Format(time.RFC3339)) // a daily job can remove files whose time has passed
	if err := errors.Join(err, file.Close()); err != nil {
		return false, err
	}
	return true, nil
}

// With a replay store of your own, each token works only once. One line tests the store:
// sealtest.TestReplayStore(t, folderStore{t.TempDir()}).
func ExampleReplayStore() {
	folder, err := os.MkdirTemp("", "used-tokens")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "pay.example.com", Logger: slog.New(slog.DiscardHandler),
		Replay: folderStore{folder},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "pay", Principal: tripseal.User("alice")}
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		log.Fatal(err)
	}
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = boundary.Open(ctx, request, token)
	fmt.Println("once: ", err)
	_, err = boundary.Open(ctx, request, token)
	fmt.Println("twice:", err)
	// Output:
	// once:  <nil>
	// twice: tripseal: token rejected
}
