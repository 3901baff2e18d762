package probe

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheCommandGetsNoAccessToken(t *testing.T) {
	t.Setenv(BearerVariable, "alice-token")
	t.Setenv(OtherBearerVariable, "bob-token")
	t.Setenv("PROBE_TEST_CHILD", "kept")
	got := withoutTokens(os.Environ())
	if slices.ContainsFunc(got, func(entry string) bool { return strings.HasSuffix(entry, "-token") }) {
		t.Error("a token is in the environment of the command")
	}
	if !slices.Contains(got, "PROBE_TEST_CHILD=kept") {
		t.Error("the command lacks the rest of the environment")
	}
	if len(withoutTokens([]string{"tripseal_probe_bearer=x", BearerVariable + "=", "PATH=/"})) != 1 {
		t.Error("names are not compared as Windows does")
	}
}
