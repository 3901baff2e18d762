package mcpseal_test

import (
	"testing"

	"github.com/mcpseal/mcpseal/sealtest"
)

// What the examples show to readers passes the suites that the readers are told to use.

func TestTheStoreOfTheExamplePassesTheSuite(t *testing.T) {
	sealtest.TestReplayStore(t, folderStore{t.TempDir()})
}

func TestTheCodecOfTheExamplePassesTheSuite(t *testing.T) {
	service, err := newLocalService()
	if err != nil {
		t.Fatal(err)
	}
	sealtest.TestCodec(t, serviceCodec{service})
}
