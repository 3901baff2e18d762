package image_test

import (
	"fmt"
	"os"
	"testing"
)

// imageVariable names the OCI archive of the image to test.
const imageVariable = "TRIPSEAL_IMAGE"

var temporary []string // folders to remove at the end

// prepare sets up the network in which the image is tested.
var prepare = func() error { return nil }

func TestMain(m *testing.M) {
	if os.Getenv(imageVariable) != "" {
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "the network cannot be prepared:", err)
			os.Exit(1)
		}
	}
	code := m.Run()
	for _, dir := range temporary {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}
