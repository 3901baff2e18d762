package tripseal_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/tripseal/tripseal"
)

// keyService encrypts with a key that never leaves the service. It does not decrypt a ciphertext
// that was changed.
type keyService interface {
	Encrypt(ctx context.Context, plaintext []byte) ([]byte, error)
	Decrypt(ctx context.Context, ciphertext []byte) ([]byte, error) // errNotGenuine if the ciphertext was changed
}

var errNotGenuine = errors.New("the ciphertext is not genuine")

// serviceCodec seals with a key service.
type serviceCodec struct{ service keyService }

func (c serviceCodec) Seal(ctx context.Context, dst, payload []byte) ([]byte, error) {
	sealed, err := c.service.Encrypt(ctx, payload)
	if err != nil {
		return nil, err
	}
	return base64.RawURLEncoding.AppendEncode(dst, sealed), nil
}

func (c serviceCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(sealed) != text { // each token has only one valid spelling
		return nil, tripseal.ReasonMalformed
	}
	payload, err := c.service.Decrypt(ctx, sealed)
	if errors.Is(err, errNotGenuine) {
		return nil, tripseal.ReasonForged
	}
	if err != nil {
		return nil, err // the service failed: the operator sees codec_failed
	}
	return append(dst, payload...), nil
}

// localService does in this example what the client of a key service would do.
type localService struct{ aead cipher.AEAD }

func newLocalService() (keyService, error) {
	key := make([]byte, 32)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return localService{aead}, err
}

func (s localService) Encrypt(_ context.Context, plaintext []byte) ([]byte, error) {
	return s.aead.Seal(nil, nil, plaintext, nil), nil
}

func (s localService) Decrypt(_ context.Context, ciphertext []byte) ([]byte, error) {
	plaintext, err := s.aead.Open(nil, nil, ciphertext, nil)
	if err != nil {
		return nil, errNotGenuine
	}
	return plaintext, nil
}

// With a codec of your own, a boundary can seal with a key that this process does not hold. One
// line tests the codec: sealtest.TestCodec(t, codec).
func ExampleCodec() {
	service, err := newLocalService()
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{
		Format:   tripseal.RecordFormat("kms1.", serviceCodec{service}),
		Audience: "deploy.example.com",
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		log.Fatal(err)
	}
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sealed:", strings.SplitAfter(token, ".")[0])
	if round, err = boundary.Open(ctx, request, token); err != nil {
		log.Fatal(err)
	}
	state, _ = round.State()
	fmt.Println("opened:", state)
	// Output:
	// sealed: kms1.
	// opened: step=1
}
