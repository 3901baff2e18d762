package tripseal_test

import (
	"testing"

	"github.com/tripseal/tripseal/sealtest"
)

// These tests run the store and the codec of the examples through the suites that the examples
// recommend.

func TestTheStoreOfTheExamplePassesTheSuite(t *testing.T) {
	t.Parallel() // the suite waits for tokens to expire
	sealtest.TestReplayStore(t, folderStore{t.TempDir()})
}

func TestTheCodecOfTheExamplePassesTheSuite(t *testing.T) {
	service, err := newLocalService()
	if err != nil {
		t.Fatal(err)
	}
	sealtest.TestCodec(t, serviceCodec{service})
}
