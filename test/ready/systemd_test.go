package ready_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// unit has the settings of a unit of systemd, by section and name.
type unit map[string]map[string][]string

func parseUnit(text string) unit {
	u, section := make(unit), ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			u[section] = make(map[string][]string)
		} else if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			u[section][name] = append(u[section][name], value)
		}
	}
	return u
}

// hardening has settings that the unit must have. Most of them limit what the service can do.
var hardening = map[string]string{
	"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes",
	"CapabilityBoundingSet": "", "MemoryDenyWriteExecute": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
	"SystemCallFilter": "@system-service", "Restart": "on-failure", "UMask": "0077",
}

// proxyFlags returns the flags of the command proxy.
func proxyFlags(t *testing.T) map[string]bool {
	t.Helper()
	help, err := tripseal(t, "proxy", "--help").Output()
	must(t, err)
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

// unitMistakes compares the unit, the settings of the proxy and the flags of the command, and
// returns what is wrong.
func unitMistakes(text, settings string, flags map[string]bool) (wrong []string) {
	want := func(holds bool, format string, args ...any) {
		if !holds {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	service := parseUnit(text)["Service"]
	one := func(name string) string {
		if len(service[name]) == 0 {
			return ""
		}
		return service[name][0]
	}
	var given map[string]any
	want(yaml.Unmarshal([]byte(settings), &given) == nil, "the settings are not YAML")
	for name := range given {
		want(flags[name], "there is no setting %s", name)
	}
	const file = "/etc/tripseal/tripseal-proxy.yaml"
	for name, args := range map[string][]string{"ExecStartPre": {"proxy", "check", file}, "ExecStart": {"proxy", "--config", file}} {
		command := strings.Fields(one(name))
		want(len(command) > 0 && command[0] == "/usr/local/bin/tripseal" && slices.Equal(command[1:], args), "%s is not tripseal %s", name, args)
		for _, arg := range command {
			flag, isFlag := strings.CutPrefix(arg, "--")
			want(!isFlag || flags[flag], "there is no flag %s", arg)
		}
	}
	for name, value := range hardening {
		set, there := service[name]
		want(there && set[0] == value, "%s is not %q", name, value)
	}
	user, group := one("User"), one("Group")
	want(user != "" && user == group && strings.Contains(text, " "+user+"\n#   install -d -o root -g "+group+" -m 0750 "), "the user is not the one that the comment makes")
	keys, _ := given["keys"].(string)
	want(strings.Contains(text, "tripseal keys new "+keys+"\n") && strings.Contains(text, "chown root:"+group+" "+keys+" && chmod 0640 "+keys+"\n"), "the keys are not where the comment makes them")
	want(strings.Contains(text, " "+filepath.ToSlash(filepath.Dir(keys))+"\n#   install"), "the folder of the keys is not the one that the comment makes")
	want(service["LoadCredential"] == nil, "LoadCredential copies the keys only once")

	stop, err := time.ParseDuration(one("TimeoutStopSec"))
	want(err == nil, "TimeoutStopSec is missing")
	for _, name := range []string{"drain-delay", "drain"} {
		text, _ := given[name].(string)
		d, err := time.ParseDuration(text)
		want(err == nil && d > 0, "%s is missing", name)
		stop -= d
	}
	want(stop >= 5*time.Second, "TimeoutStopSec is too short for drain-delay and drain")
	goal, ok := strings.CutPrefix(one("Environment"), "GOMEMLIMIT=")
	want(ok && 2*256 < mebibytes(goal) && mebibytes(goal) < 1024 && one("MemoryMax") == "1G", "the memory does not fit") // 256MiB is the default of --budget
	want(given["identity"] != "header" || strings.HasPrefix(fmt.Sprint(given["listen"]), "127.0.0.1:"), "others reach the proxy, and can name the user")
	want(strings.HasPrefix(fmt.Sprint(given["admin"]), "127.0.0.1:"), "others reach the address of admin")
	return wrong
}

func TestTheUnitFitsTheCommand(t *testing.T) {
	flags := proxyFlags(t)
	text, settings := deployed(t, "systemd/tripseal-proxy.service"), deployed(t, "systemd/tripseal-proxy.yaml")
	for _, w := range unitMistakes(text, settings, flags) {
		t.Error(w)
	}
	for _, c := range []struct{ old, new, want string }{
		{"proxy check /etc", "proxy try /etc", "ExecStartPre is not"},
		{"proxy --config /etc", "proxy --settings /etc", "there is no flag --settings"},
		{"proxy --config /etc/tripseal/", "proxy --config /etc/", "ExecStart is not"},
		{"NoNewPrivileges=yes\n", "", "NoNewPrivileges is not"},
		{"ProtectSystem=strict", "ProtectSystem=full", "ProtectSystem is not"},
		{"CapabilityBoundingSet=\n", "CapabilityBoundingSet=CAP_NET_BIND_SERVICE\n", "CapabilityBoundingSet is not"},
		{"SystemCallFilter=@system-service", "SystemCallFilter=@basic-io", "SystemCallFilter is not"},
		{"User=tripseal", "User=nobody", "the user is not"},
		{"keys new /etc/tripseal/keys/keys", "keys new /etc/keys", "the keys are not where"},
		{"/etc/tripseal /etc/tripseal/keys\n", "/etc/tripseal /etc/tripseal/key\n", "the folder of the keys"},
		{"Type=exec", "Type=exec\nLoadCredential=keys:/etc/tripseal/keys/keys", "LoadCredential copies"},
		{"TimeoutStopSec=60s", "TimeoutStopSec=30s", "too short"},
		{"TimeoutStopSec=60s", "", "TimeoutStopSec is missing"},
		{"GOMEMLIMIT=900MiB", "GOMEMLIMIT=1100MiB", "the memory does not fit"},
	} {
		notice(t, c.new, unitMistakes(replaced(t, text, c.old, c.new), settings, flags), c.want)
	}
	for _, c := range []struct{ old, new, want string }{
		{"log-format:", "log_format:", "there is no setting log_format"},
		{"drain: 30s", "drain: 300s", "too short"},
		{"drain-delay: 5s\n", "", "drain-delay is missing"},
		{"keys: /etc/tripseal/keys/keys", "keys: /etc/tripseal/keys", "the keys are not where"},
		{"listen: 127.0.0.1:8080", "listen: 0.0.0.0:8080", "can name the user"},
		{"admin: 127.0.0.1:9090", "admin: :9090", "others reach the address of admin"},
		{"trust:", "\ttrust:", "not YAML"},
	} {
		notice(t, c.new, unitMistakes(text, replaced(t, settings, c.old, c.new), flags), c.want)
	}
}

func TestTheCommandAcceptsTheSettingsOfTheUnit(t *testing.T) {
	dir, settings := t.TempDir(), deployed(t, "systemd/tripseal-proxy.yaml")
	newKeys(t, filepath.Join(dir, "keys"))
	settings = replaced(t, settings, "/etc/tripseal/keys/", filepath.ToSlash(dir)+"/")
	settings = replaced(t, settings, "http://127.0.0.1:9000", newUpstream(t))
	for change, want := range map[string]bool{"": true, "drain-time: 5s\n": false, "audience: again\n": false, "keys: /none\n": false} {
		file := filepath.Join(dir, "proxy.yaml")
		must(t, os.WriteFile(file, []byte(settings+change), 0o600))
		out, err := tripseal(t, "proxy", "check", file).CombinedOutput()
		if good := err == nil && strings.Contains(string(out), "ok   upstream"); good != want {
			t.Errorf("with %q: %v\n%s", change, err, out)
		}
	}
}

// TestSystemdAcceptsTheUnit needs systemd-analyze, which works without a running systemd.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze := tool(t, "TRIPSEAL_SYSTEMD_ANALYZE", "systemd-analyze")
	command, err := build()
	must(t, err)
	text := strings.ReplaceAll(deployed(t, "systemd/tripseal-proxy.service"), "/usr/local/bin/tripseal", command)
	run := func(text string, args ...string) (string, error) {
		file := filepath.Join(t.TempDir(), "tripseal-proxy.service")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, append(args, file)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(text, "verify"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("%v\n%s", err, out)
	}
	// The exposure level of the service must be at most 2.0, on a scale to 10.0.
	if out, err := run(text, "security", "--offline=true", "--threshold=20"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// Both "verify" and "security" must notice a mistake in the unit.
	if out, err := run(replaced(t, text, "ProtectSystem=strict", "ProtectSystems=strict"), "verify"); err == nil && strings.TrimSpace(out) == "" {
		t.Error("verify does not notice a setting that does not exist")
	}
	if _, err := run(replaced(t, text, "CapabilityBoundingSet=\n", ""), "security", "--offline=true", "--threshold=20"); err == nil {
		t.Error("the service keeps all capabilities, and that is not noticed")
	}
}
