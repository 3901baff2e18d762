package keys_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// Every replica reads the same file, and loads it again when it changes.
func ExampleOpenFile() {
	source, err := keys.OpenFile("/etc/release/keys", nil)
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(boundary)
}

// The keys are in the variable TRIPSEAL_KEYS. They stay the same while the process runs.
func ExampleEnvironment() {
	os.Setenv("TRIPSEAL_KEYS", tripseal.GenerateKey().Reveal()+" "+tripseal.GenerateKey().Reveal())
	defer os.Unsetenv("TRIPSEAL_KEYS")

	ring, err := keys.Environment()
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "release.example.com"})
	fmt.Println(boundary != nil, err)
	// Output: true <nil>
}

// The keys exist already: they were made with openssl rand -hex 32. The first key seals, and all
// keys open. To rotate, add the new key in second place everywhere, then move it to the front
// everywhere, then drop the old key.
func ExampleFromEnvironment() {
	os.Setenv("RELEASE_KEYS", "c5b2f0a97e3d4486912bd05c3ef718aa64fd0e9b27c18350adf6417b92ce3058 "+
		"0f6e1d8c9b3a4752e8d0c7b6a5f493e21b7a8c9d5e0f4a3b6c2d1e8f7a9b0c4d\n")
	defer os.Unsetenv("RELEASE_KEYS")

	ring, err := keys.FromEnvironment("RELEASE_KEYS", keys.Hex)
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "release.example.com"})
	fmt.Println(boundary != nil, err)
	// Output: true <nil>
}

// The encoding is never guessed. A text in another encoding is refused.
func ExampleFromText() {
	_, err := keys.FromText("c5b2f0a97e3d4486912bd05c3ef718aa64fd0e9b27c18350adf6417b92ce3058", keys.Base64)
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))
	// Output:
	// keys: key 1 in the text is not 32 random bytes in base64: 48 bytes are too many;
	// a key is 32 random bytes: make one with openssl rand -hex 32, openssl rand -base64 32 or tripseal.GenerateKey
}

// fetch stands for the client of a secret manager.
func fetch(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// The keys are raw bytes from a secret manager.
func ExampleFromBytes() {
	ring, err := keys.FromBytes(fetch("release/current"), fetch("release/previous"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ring.IDs()), "keys")
	// Output: 2 keys
}

// keyService stands for the client of a key service.
type keyService struct{}

func (keyService) Decrypt(context.Context, string, []byte) ([]byte, error) { return nil, nil }

// serviceUnwrapper lets a key service decrypt the secrets.
type serviceUnwrapper struct {
	service keyService
	key     string // the service's name for the key that wraps our keys
}

func (u serviceUnwrapper) Scheme() string { return "our-service" }

func (u serviceUnwrapper) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	return u.service.Decrypt(ctx, u.key, wrapped)
}

// A key service decrypts the secrets when the file is loaded.
func ExampleUnwrapper() {
	source, err := keys.OpenFile("/etc/release/keys", &keys.Options{
		Unwrap: []keys.Unwrapper{serviceUnwrapper{key: "tripseal"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
}

// A dashboard should show whether the file can be used, which key seals tokens, the number of keys
// that can open tokens, and when these keys change next.
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
