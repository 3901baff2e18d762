package atd

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

const (
	keySize = 32
	keyName = "ATD_CURSOR_SIGNING_KEY"
)

// findKey returns the given key. If that is nil, it returns the key in the environment, or a
// random key if the environment has none.
func findKey(given []byte, logger *slog.Logger) ([]byte, error) {
	if given != nil {
		if len(given) != keySize {
			return nil, fmt.Errorf("atd: a key has %d bytes, this one has %d", keySize, len(given))
		}
		return bytes.Clone(given), nil
	}
	text := strings.TrimSpace(os.Getenv(keyName))
	if text == "" {
		logger.Warn("atd: " + keyName + " is not set, so a random key is used: cursors die with this process and no other replica accepts them")
		key := make([]byte, keySize)
		rand.Read(key) // never fails
		return key, nil
	}
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		key, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("atd: %s is set, but is not the base64 of %d bytes; make one with: openssl rand -base64 32", keyName, keySize)
	}
	return key, nil
}
