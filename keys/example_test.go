package keys_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/keys"
)

// Every replica reads the same file, and follows it.
func ExampleOpenFile() {
	source, err := keys.OpenFile("/etc/release/keys", nil)
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := mcpseal.New(mcpseal.Config{Keys: source, Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(boundary)
}

// Keys that stay the same while the process runs.
func ExampleEnvironment() {
	os.Setenv("MCPSEAL_KEYS", mcpseal.GenerateKey().Reveal()+" "+mcpseal.GenerateKey().Reveal())
	defer os.Unsetenv("MCPSEAL_KEYS")

	ring, err := keys.Environment()
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "release.example.com"})
	fmt.Println(boundary != nil, err)
	// Output: true <nil>
}

// keyService stands for the client of a key service.
type keyService struct{}

func (keyService) Decrypt(context.Context, string, []byte) ([]byte, error) { return nil, nil }

// serviceUnwrapper has secrets decrypted by a key service.
type serviceUnwrapper struct {
	service keyService
	key     string // the service's name for the key that wraps ours
}

func (u serviceUnwrapper) Scheme() string { return "our-service" }

func (u serviceUnwrapper) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	return u.service.Decrypt(ctx, u.key, wrapped)
}

// Secrets that a key service decrypts when the file is loaded.
func ExampleUnwrapper() {
	source, err := keys.OpenFile("/etc/release/keys", &keys.Options{
		Unwrap: []keys.Unwrapper{serviceUnwrapper{key: "mcpseal"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
}

// What to put on a dashboard: whether the file can be used, and what happens next.
func ExampleOptions_observer() {
	source, err := keys.OpenFile("/etc/release/keys", &keys.Options{
		Observer: func(e keys.Event) {
			fmt.Println("usable:", e.Err == nil, "seals:", e.Seals, "opens:", len(e.Opens), "next:", e.Next)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
}
