package image_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const user = 65532 // the user and the group of the image

// tripseal returns the path of the command tripseal. If there is an image to test, the command
// is the one in the image. Otherwise the command is built here.
var tripseal = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tripseal")
	if err != nil {
		return "", err
	}
	temporary = append(temporary, dir)
	name := filepath.Join(dir, "tripseal")
	if archive := os.Getenv(imageVariable); archive != "" {
		image, err := readImage(archive)
		if err == nil {
			err = os.WriteFile(name, image.files["tripseal"], 0o755)
		}
		return name, err
	}
	out, err := exec.Command("go", "build", "-o", name, "github.com/tripseal/tripseal/cmd/tripseal").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return name, err
})

// proxyFlags returns the flags of the command proxy.
func proxyFlags(t *testing.T) map[string]bool {
	t.Helper()
	name, err := tripseal()
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(name, "proxy", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(help), "\nFlags:\n")
	flags := make(map[string]bool)
	for _, match := range regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(list, -1) {
		flags[match[1]] = true
	}
	if len(flags) < 30 {
		t.Fatalf("only %d flags were found", len(flags))
	}
	return flags
}

// review compares the parts of a manifest with each other and with the command.
type review struct {
	*cluster
	flags map[string]bool
	wrong []string

	pod      *pod
	labels   map[string]string
	proxy    *container
	settings map[string]any // of the proxy
}

func (r *review) want(holds bool, format string, args ...any) {
	if !holds {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

// mistakesIn returns what is wrong with a manifest.
func mistakesIn(text []byte, flags map[string]bool) []string {
	c, err := parse(text)
	if err != nil {
		return []string{err.Error()}
	}
	r := &review{cluster: c, flags: flags}
	r.want(c.kinds["Secret"] == 0, "a secret does not belong into a file that is checked in")
	if len(c.deployments) != 1 || len(c.budgets) != 1 || len(c.deployments[0].Spec.Template.Spec.Containers) == 0 {
		return append(r.wrong, "there must be one Deployment with containers, and one PodDisruptionBudget")
	}
	d := &c.deployments[0]
	r.pod, r.labels = &d.Spec.Template.Spec, d.Spec.Template.Metadata.Labels
	r.proxy = &r.pod.Containers[0]
	r.want(r.proxy.Name == "proxy", "the first container must be the proxy")
	r.want(d.Spec.Replicas > 1, "one replica is none during an update")
	r.want(selects(d.Spec.Selector.MatchLabels, r.labels), "the Deployment does not select its pods")
	r.want(selects(c.budgets[0].Spec.Selector.MatchLabels, r.labels), "the PodDisruptionBudget does not select the pods")
	r.want(len(r.pod.TopologySpreadConstraints) == 1 && selects(r.pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels, r.labels), "the topology spread does not select the pods")
	r.command()
	if r.settings == nil {
		return r.wrong
	}
	r.files()
	r.ports()
	r.rights()
	r.resources()
	r.end()
	r.network()
	return r.wrong
}

// selects reports whether a selector selects objects with these labels. For an empty selector,
// which selects everything, it returns false: no manifest should have one.
func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// This method checks the arguments and the variables of the proxy. It also checks that the
// settings of the proxy are where the arguments say.
func (r *review) command() {
	r.want(r.proxy.Image == "tripseal:0.1.0", "the image %q is not the one that docs/kubernetes.md builds", r.proxy.Image)
	r.want(r.proxy.Command == nil, "the image has an entrypoint; a command replaces it")
	r.want(len(r.proxy.Args) > 0 && r.proxy.Args[0] == "proxy", "the arguments do not begin with proxy")
	config := ""
	for i, arg := range r.proxy.Args {
		name, isFlag := strings.CutPrefix(arg, "--")
		name, value, _ := strings.Cut(name, "=")
		r.want(!isFlag || r.flags[name], "there is no flag --%s", name)
		if name == "config" && value == "" && i+1 < len(r.proxy.Args) {
			config = r.proxy.Args[i+1]
		}
	}
	mounted, volume := r.mounted(config)
	if volume == nil {
		r.want(false, "no volume has the file of --config, %q", config)
		return
	}
	for _, m := range r.configMaps {
		if text, ok := m.Data[mounted]; ok && m.Metadata.Name == volume.ConfigMap.Name {
			r.want(yaml.Unmarshal([]byte(text), &r.settings) == nil, "the settings are not YAML")
		}
	}
	r.want(r.settings != nil, "no config map %q has the settings %q", volume.ConfigMap.Name, mounted)
	for name := range r.settings {
		r.want(r.flags[name], "there is no setting %s", name)
	}
	allowed := []string{"GOMEMLIMIT"} // the Go runtime reads it
	for _, name := range []string{"keys-env", "redis-env"} {
		if variable, ok := r.settings[name].(string); ok {
			allowed = append(allowed, variable)
			r.want(slices.ContainsFunc(r.proxy.Env, func(e struct{ Name, Value string }) bool { return e.Name == variable }), "the variable %s of %s is missing", variable, name)
		}
	}
	for _, e := range r.proxy.Env {
		r.want(slices.Contains(allowed, e.Name), "nothing reads the variable %s", e.Name)
	}
}

// mounted returns the volume in which the proxy finds a file, and the name of the file there.
func (r *review) mounted(file string) (name string, found *volume) {
	for _, mount := range r.proxy.VolumeMounts {
		if path.Dir(file) != mount.MountPath {
			continue
		}
		for i := range r.pod.Volumes {
			if r.pod.Volumes[i].Name == mount.Name {
				return path.Base(file), &r.pod.Volumes[i]
			}
		}
	}
	return "", nil
}

// The map secrets has the names of the files that docs/kubernetes.md puts into each secret.
var secrets = map[string][]string{"tripseal-keys": {"keys"}, "release-tls": {"tls.crt", "tls.key"}}

func (r *review) files() {
	for _, setting := range []string{"keys", "tls-cert", "tls-key"} {
		file, given := r.settings[setting].(string)
		if !given {
			continue
		}
		name, volume := r.mounted(file)
		if volume == nil {
			r.want(false, "no volume has the file of %s, %q", setting, file)
			continue
		}
		r.want(slices.Contains(secrets[volume.Secret.SecretName], name), "the secret %q has no file %q", volume.Secret.SecretName, name)
		r.want(volume.Secret.DefaultMode == 0o440, "%s: the mode of the files is %#o, not 0440", setting, volume.Secret.DefaultMode)
	}
	r.want(r.settings["keys"] != nil, "the keys are missing")
	if issuer, ok := r.settings["jwt-issuer"].(string); ok && strings.HasPrefix(issuer, "https:") {
		_, volume := r.mounted("/etc/ssl/certs/ca-certificates.crt")
		r.want(volume != nil && volume.ConfigMap.Name == "ca-bundle", "the certificates of authorities are missing, which verify the issuer")
	}
	for _, mount := range r.proxy.VolumeMounts {
		r.want(mount.SubPath == "" && mount.SubPathExpr == "", "%s is mounted with a subPath, so the running container never gets a new version", mount.Name)
		r.want(mount.ReadOnly, "%s is not mounted read-only", mount.Name)
	}
}

// portOf returns the port of an address in the settings.
func (r *review) portOf(setting string) int {
	address, _ := r.settings[setting].(string)
	host, text, err := net.SplitHostPort(address)
	r.want(err == nil && host == "", "%s: other machines do not reach the address %q", setting, address)
	port, _ := strconv.Atoi(text)
	return port
}

// This method looks up a port of the proxy by name, and returns the number of the port. If the
// parameter is already a number, the method returns the same number.
func (r *review) number(port any) int {
	for _, p := range r.proxy.Ports {
		if p.Name == port {
			return p.ContainerPort
		}
	}
	number, _ := port.(float64)
	return int(number)
}

func (r *review) ports() {
	listen, admin := r.portOf("listen"), r.portOf("admin")
	r.want(r.number("mcp") == listen, "the port mcp is not that of listen, %d", listen)
	r.want(r.number("admin") == admin, "the port admin is not that of admin, %d", admin)
	for name, p := range map[string]*probe{"/healthz": &r.proxy.LivenessProbe, "/readyz": &r.proxy.ReadinessProbe} {
		r.want(p.HTTPGet.Path == name, "a probe asks for %q, not %s", p.HTTPGet.Path, name)
		r.want(r.number(p.HTTPGet.Port) == admin, "the probe %s is not on the port of admin", name)
		r.want(p.HTTPGet.Scheme == "" || p.HTTPGet.Scheme == "HTTP", "the probe %s must speak plain HTTP", name)
	}
	r.want(r.proxy.ReadinessProbe.TimeoutSeconds > 5, "the readiness probe gives up before the proxy says what is wrong")
	served := false
	for _, s := range r.services {
		if !selects(s.Spec.Selector, r.labels) {
			continue
		}
		served = true
		for _, p := range s.Spec.Ports {
			r.want(r.number(p.TargetPort) == listen, "the Service leads to port %v, not to that of listen, %d", p.TargetPort, listen)
		}
	}
	r.want(served, "no Service selects the pods of the proxy")
}

func (r *review) rights() {
	s := r.proxy.SecurityContext
	r.want(s.RunAsUser == user && s.RunAsGroup == user, "the user and group are not those of the image, %d", user)
	r.want(r.pod.SecurityContext.FSGroup == user, "the group that may read the secrets is not %d", user)
	r.want(s.RunAsNonRoot && r.pod.SecurityContext.RunAsNonRoot, "runAsNonRoot is missing")
	r.want(s.ReadOnlyRootFilesystem, "readOnlyRootFilesystem is missing")
	r.want(s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation, "allowPrivilegeEscalation: false is missing")
	r.want(slices.Equal(s.Capabilities.Drop, []string{"ALL"}) && len(s.Capabilities.Add) == 0, "capabilities are left")
	r.want(r.pod.SecurityContext.SeccompProfile.Type == "RuntimeDefault", "the seccomp profile is missing")
	r.want(r.pod.AutomountServiceAccountToken != nil && !*r.pod.AutomountServiceAccountToken, "automountServiceAccountToken: false is missing")
	r.want(!r.pod.HostNetwork, "no network policy applies to the network of the host")
}

// mebibytes reads a size such as 64MiB or 64Mi.
func mebibytes(text any) int {
	s, _ := text.(string)
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSuffix(s, "B"), "Mi"))
	if err != nil {
		return -1
	}
	return n
}

func (r *review) resources() {
	request, limit, budget, goal := mebibytes(r.proxy.Resources.Requests["memory"]), mebibytes(r.proxy.Resources.Limits["memory"]), mebibytes(r.settings["budget"]), -1
	for _, e := range r.proxy.Env {
		if e.Name == "GOMEMLIMIT" {
			goal = mebibytes(e.Value)
		}
	}
	r.want(0 < request && 2*budget < goal && goal < limit, "the memory does not fit: request %d, budget %d, GOMEMLIMIT %d, limit %d", request, budget, goal, limit)
	r.want(r.proxy.Resources.Requests["cpu"] != "", "the request for CPU is missing")
	r.want(r.proxy.Resources.Limits["cpu"] == "", "a limit of CPU makes the proxy slow while there is CPU to be had")
}

// This method checks that the pod lives until the proxy has ended.
func (r *review) end() {
	seconds := 0
	for _, name := range []string{"drain-delay", "drain"} {
		text, _ := r.settings[name].(string)
		d, err := time.ParseDuration(text)
		r.want(err == nil && d > 0, "%s is missing", name)
		seconds += int(d.Seconds())
	}
	r.want(r.pod.TerminationGracePeriodSeconds >= seconds+5, "terminationGracePeriodSeconds is too short for drain-delay and drain, %d seconds", seconds)
	for _, c := range r.pod.Containers[1:] {
		r.want(c.Lifecycle.PreStop.Sleep.Seconds >= seconds, "the container %s ends before the proxy, which takes up to %d seconds", c.Name, seconds)
		r.want(len(c.Ports) == 0, "the container %s must listen on loopback only", c.Name)
	}
}

// This method checks that only the proxy can reach the server. It also checks that the
// NetworkPolicy of the proxy limits who can reach the ports that need protection.
func (r *review) network() {
	text, _ := r.settings["upstream"].(string)
	upstream, err := url.Parse(text)
	if err != nil || upstream.Port() == "" {
		r.want(false, "upstream %q has no port", text)
		return
	}
	port, _ := strconv.Atoi(upstream.Port())
	proxied := r.policiesFor(r.labels)
	r.want(len(proxied) == 1, "there must be one NetworkPolicy for the pods of the proxy")
	for _, p := range proxied {
		for _, rule := range p.Spec.Ingress {
			r.want(len(rule.Ports) == 1, "a rule of the NetworkPolicy is not for one port")
			for _, allowed := range rule.Ports {
				number := r.number(allowed.Port)
				r.want(number == r.number("mcp") || number == r.number("admin"), "the NetworkPolicy opens the port %v", allowed.Port)
				everyone := len(rule.From) == 0
				r.want(number != r.number("admin") || !everyone, "everyone reaches the port of admin")
				r.want(number != r.number("mcp") || !everyone || r.settings["identity"] != "header", "everyone reaches the proxy, and can send the header that names the user")
			}
		}
	}
	if ip := net.ParseIP(upstream.Hostname()); ip != nil {
		r.want(ip.IsLoopback() && len(r.pod.Containers) == 2, "the server is neither in the pod nor behind a Service")
		return
	}
	for _, s := range r.services {
		if s.Metadata.Name != upstream.Hostname() {
			continue
		}
		target := 0
		for _, p := range s.Spec.Ports {
			if p.Port == port {
				target = r.number(p.TargetPort)
			}
		}
		r.want(target != 0, "the Service %s has no port %d", s.Metadata.Name, port)
		policies := r.policiesFor(s.Spec.Selector)
		r.want(len(policies) == 1, "there must be one NetworkPolicy for the pods of the server")
		for _, p := range policies {
			r.want(len(p.Spec.Ingress) == 1 && len(p.Spec.Ingress[0].From) == 1 && selects(p.Spec.Ingress[0].From[0].PodSelector.MatchLabels, r.labels), "not only the proxy reaches the server")
			r.want(len(p.Spec.Ingress) == 1 && len(p.Spec.Ingress[0].Ports) == 1 && r.number(p.Spec.Ingress[0].Ports[0].Port) == target, "the NetworkPolicy of the server is not for its port, %d", target)
		}
		return
	}
	r.want(false, "there is no Service %s", upstream.Hostname())
}

func (r *review) policiesFor(labels map[string]string) (found []networkPolicy) {
	for _, p := range r.policies {
		if selects(p.Spec.PodSelector.MatchLabels, labels) && slices.Contains(p.Spec.PolicyTypes, "Ingress") {
			found = append(found, p)
		}
	}
	return found
}

func TestTheManifestsFitTheCommand(t *testing.T) {
	flags := proxyFlags(t)
	for _, name := range manifests {
		for _, wrong := range mistakesIn(readManifest(t, name), flags) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}
