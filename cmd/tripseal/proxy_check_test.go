package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// check runs the command "tripseal proxy check" on a file with this text. It returns what the
// command prints, and the exit code.
func check(t *testing.T, file string) (string, int) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{"proxy", "check", name}, strings.NewReader(""), &out, &errs)
	return out.String(), code
}

func TestCheckTriesEverythingThatTheProxyNeeds(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	away := startIssuer()
	away.Close()
	authority := newAuthority(t)
	cert, key, _ := authority.Files(t, leaf{DNS: []string{"mcp.example.com"}})
	_, otherKey, _ := authority.Files(t, leaf{DNS: []string{"mcp.example.com"}})
	elsewhere, elsewhereKey, _ := authority.Files(t, leaf{DNS: []string{"other.example.com"}})
	redis := startRedis(t)
	keyFile := filepath.Join(t.TempDir(), "keys")
	if code := run([]string{"keys", "new", keyFile}, strings.NewReader(""), new(bytes.Buffer), new(bytes.Buffer)); code != 0 {
		t.Fatal(code)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	tlsUpstream := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--tls-cert", cert, "--tls-key", key)

	good := strings.Join([]string{
		"upstream: " + leaky(t), "listen: 127.0.0.1:8080", "audience: release.example.com", "keys: " + keyFile,
		"identity: jwt", "jwt-issuer: " + provider.Issuer, "resource: " + testAudience,
		"tls-cert: " + cert, "tls-key: " + key, "single-use: true", "redis: " + redis.address,
	}, "\n")
	if out, code := check(t, good); code != 0 || out != "ok   file\nok   settings\nok   keys\nok   store of used tokens\nok   identity\nok   certificate\nok   upstream\n" {
		t.Errorf("%d\n%s", code, out)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"an unknown field":           {"listen:", "lisen:", `bad  file: .*there is no field "lisen"`},
		"a missing identity":         {"identity: jwt\n", "", "bad  settings: --identity is missing: choose header, jwt or mtls, or anonymous if there are no users"},
		"a broken key file":          {keyFile, broken, "bad  keys: --keys: "},
		"no key file":                {keyFile, keyFile + "-none", "bad  keys: --keys: "},
		"a dead upstream":            {"upstream: " + strings.Fields(good)[1], "upstream: http://127.0.0.1:1/mcp", "bad  upstream: .*connection refused"},
		"an upstream of nobody":      {"upstream: " + strings.Fields(good)[1], "upstream: " + tlsUpstream.address, "bad  upstream: .*certificate"},
		"the key of another":         {"tls-key: " + key, "tls-key: " + otherKey, "bad  certificate: --tls-cert: .* are not a certificate and its key: "},
		"the certificate of another": {cert + "\ntls-key: " + key, elsewhere + "\ntls-key: " + elsewhereKey, "bad  certificate: --tls-cert: .*is for another host"},
		"no issuer":                  {provider.Issuer, away.Issuer, "bad  identity: "},
		"no Redis":                   {redis.address, "unix:///none", "bad  store of used tokens: --redis: "},
	} {
		if !strings.Contains(good, c.from) {
			t.Fatalf("%s: %q is not in the file", name, c.from)
		}
		out, code := check(t, strings.Replace(good, c.from, c.to, 1))
		before, after, _ := strings.Cut(c.want, ".*")
		if code != cli.ExitNo || !strings.Contains(out, before) || !strings.Contains(out, after) {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
}

func TestSettingsThatLeaveSomethingUnprotectedAreWarnedAbout(t *testing.T) {
	t.Parallel()
	const trust, upstream = "--trust lets every peer say who the user is", "--upstream is plain HTTP"
	for _, c := range []struct {
		upstream string
		trusted  []string
		want     []string
		not      []string
	}{
		{"http://192.0.2.1/mcp", []string{"0.0.0.0/0"}, []string{trust, upstream}, nil},
		{"http://server/mcp", []string{"::/0"}, []string{trust, upstream}, nil},
		{"http://127.0.0.1:1/mcp", []string{"10.0.0.0/8"}, nil, []string{trust, upstream}},
		{"http://localhost:1/mcp", []string{"10.0.0.0/8"}, nil, []string{trust, upstream}},
		{"https://192.0.2.1/mcp", []string{"10.0.0.0/8"}, nil, []string{trust, upstream}},
	} {
		args := []string{"--upstream", c.upstream, "--listen", "127.0.0.1:0", "--ephemeral",
			"--identity", "header", "--header", "X-User"}
		for _, network := range c.trusted {
			args = append(args, "--trust", network)
		}
		p := startProxy(t, args...)
		p.stop()
		for _, text := range c.want {
			if !strings.Contains(p.log.String(), text) {
				t.Errorf("%+v: no warning %q", c, text)
			}
		}
		for _, text := range c.not {
			if strings.Contains(p.log.String(), text) {
				t.Errorf("%+v: the warning %q", c, text)
			}
		}
	}
}
