package image_test

import (
	"os"
	"testing"
)

// imageVariable names the OCI archive of the image to test.
const imageVariable = "MCPSEAL_IMAGE"

var temporary []string // folders to remove at the end

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range temporary {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}
