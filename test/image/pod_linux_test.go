package image_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runningPod is the proxy of a manifest, in a root folder of its own.
type runningPod struct {
	*review
	root root
	*process
}

// startPod starts the proxy of a manifest as Kubernetes would: with its arguments, variables, user
// and volumes. The parameter contents has the files of the secrets and config maps that the
// manifest uses but does not make. The arguments in moreArgs come after those of the manifest.
func startPod(t *testing.T, manifest string, contents map[string]map[string]string, moreArgs ...string) *runningPod {
	t.Helper()
	c, err := parse(readManifest(t, manifest))
	must(t, err)
	r := &review{cluster: c, flags: proxyFlags(t)}
	r.pod = &c.deployments[0].Spec.Template.Spec
	r.proxy = &r.pod.Containers[0]
	for _, m := range c.configMaps {
		contents[m.Metadata.Name] = m.Data
	}
	p := &runningPod{review: r, root: theImage(t).unpack(t)}
	for _, mount := range r.proxy.VolumeMounts {
		for _, v := range r.pod.Volumes {
			if v.Name == mount.Name {
				p.mount(t, mount.MountPath, v, contents[v.ConfigMap.Name+v.Secret.SecretName])
			}
		}
	}
	p.root.write(t, "etc/hosts", []byte("127.0.0.1 localhost release-server login.example.com\n"))
	cmd := p.root.command(append(r.proxy.Args, moreArgs...)...)
	for _, e := range r.proxy.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	p.process = start(t, cmd)
	p.answers(t, "http://127.0.0.1:9090"+r.proxy.LivenessProbe.HTTPGet.Path)
	p.answers(t, "http://127.0.0.1:9090"+r.proxy.ReadinessProbe.HTTPGet.Path)
	p.root.run(t, "proxy", "check", "/etc/tripseal/config/proxy.yaml") // as docs/kubernetes.md says
	return p
}

// mount writes a volume as the kubelet does. The files are in a folder with a new name, and the
// link ..data leads to this folder. For each file, there is a link that leads through ..data. An
// update replaces only the link ..data.
func (p *runningPod) mount(t *testing.T, at string, v volume, files map[string]string) {
	t.Helper()
	if len(files) == 0 {
		t.Fatalf("nothing is in the volume %s", v.Name)
	}
	folder := filepath.Join(string(p.root), at)
	mode := os.FileMode(0o644)
	if v.Secret.SecretName != "" {
		mode = os.FileMode(v.Secret.DefaultMode)
	}
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.Chown(folder, 0, p.pod.SecurityContext.FSGroup))
	must(t, os.Chmod(folder, 0o777|os.ModeSticky|os.ModeSetgid))
	before, _ := os.Readlink(filepath.Join(folder, "..data"))
	now := "..2026" + rand.Text()
	must(t, os.Mkdir(filepath.Join(folder, now), 0o755))
	for name, text := range files {
		file := filepath.Join(folder, now, name)
		must(t, os.WriteFile(file, []byte(text), mode))
		must(t, os.Chown(file, 0, p.pod.SecurityContext.FSGroup))
		must(t, os.Chmod(file, mode))
		if before == "" {
			must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)))
		}
	}
	must(t, os.Symlink(now, filepath.Join(folder, "..data_tmp")))
	must(t, os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
	if before != "" {
		must(t, os.RemoveAll(filepath.Join(folder, before)))
	}
}

// warnings returns the warnings in the log.
func (p *runningPod) warnings() (found []string) {
	for line := range strings.Lines(p.log.String()) {
		var record struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &record) == nil && record.Level != "INFO" {
			found = append(found, record.Msg)
		}
	}
	return found
}

func TestTheSidecarServesAndFollowsItsSecret(t *testing.T) {
	theImage(t)
	leaky(t)
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	listed := operate(t, dir, "keys", "new", "keys")
	text, err := os.ReadFile(keys)
	must(t, err)
	// The test takes the place of the gateway, and its requests come from loopback.
	p := startPod(t, "proxy-sidecar.yaml", map[string]map[string]string{"tripseal-keys": {"keys": string(text)}}, "--trust", "127.0.0.1/32", "--drain-delay", "0s")
	if warnings := p.warnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "speaks plain HTTP") {
		t.Errorf("the log warns: %q", warnings)
	}
	c := &client{address: "http://127.0.0.1:8080/mcp", header: http.Header{"X-User": {"alice"}}}
	token, err := c.flow()
	if err != nil {
		t.Fatalf("%v\n%s", err, &p.log)
	}
	nobody := &client{address: c.address}
	if status, message, _, err := nobody.deploy("", 0); err != nil || status != http.StatusUnauthorized {
		t.Errorf("nobody: %d %s %v", status, message, err)
	}

	id := regexp.MustCompile(`with key ([0-9a-f]{8})`).FindStringSubmatch(listed)
	if id == nil {
		t.Fatal(listed)
	}
	operate(t, dir, "keys", "revoke", "keys", id[1], "--replace")
	if text, err = os.ReadFile(keys); err != nil {
		t.Fatal(err)
	}
	for _, v := range p.pod.Volumes {
		if v.Secret.SecretName == "tripseal-keys" {
			p.mount(t, "/etc/tripseal/keys", v, map[string]string{"keys": string(text)})
		}
	}
	eventually(t, "the token of the revoked key is rejected", func() bool {
		_, message, _, err := c.deploy(token, 1)
		return err == nil && strings.Contains(message, "-32602")
	}, &p.log)
	if _, err := c.flow(); err != nil {
		t.Errorf("with the new key: %v\n%s", err, &p.log)
	}
	if err := p.stop(); err != nil || strings.Contains(p.log.String(), "others can reach") {
		t.Errorf("%v\n%s", err, &p.log)
	}
}

func TestTheDeploymentServesWithTLSAndKnowsUsersByTheirTokens(t *testing.T) {
	theImage(t)
	leaky(t)
	ca := newAuthority(t)
	login := newIssuer(t, "https://login.example.com")
	dir := t.TempDir()
	cert, key := ca.issue(t, "login.example.com")
	must(t, os.WriteFile(filepath.Join(dir, "cert"), []byte(cert), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600))
	serve(t, "127.0.0.1:443", login, filepath.Join(dir, "cert"), filepath.Join(dir, "key"))

	cert, key = ca.issue(t, "release.example.com")
	p := startPod(t, "proxy-deployment.yaml", map[string]map[string]string{
		"tripseal-keys": {"keys": string(newKeys(t))},
		"release-tls":   {"tls.crt": cert, "tls.key": key},
		"ca-bundle":     {"ca-certificates.crt": ca.pem},
	}, "--drain-delay", "0s")
	if warnings := p.warnings(); len(warnings) != 0 {
		t.Errorf("the log warns: %q", warnings)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca.pem))
	c := &client{
		Client:  http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "release.example.com"}}},
		address: "https://127.0.0.1:8443/mcp",
		header:  http.Header{"Authorization": {"Bearer " + login.token(t, "https://release.example.com/mcp")}},
	}
	if _, err := c.flow(); err != nil {
		t.Errorf("%v\n%s", err, &p.log)
	}
	for _, token := range []string{"", "Bearer " + login.token(t, "https://other.example.com/mcp")} {
		stranger := &client{Client: c.Client, address: c.address, header: http.Header{"Authorization": {token}}}
		if status, message, _, err := stranger.deploy("", 0); err != nil || status != http.StatusUnauthorized {
			t.Errorf("%d %s %v", status, message, err)
		}
	}
	if err := p.stop(); err != nil {
		t.Errorf("%v\n%s", err, &p.log)
	}
}
