package ready_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// object is a document of a manifest, or a part of one.
type object map[string]any

// at returns the value at a path such as spec.ports.0.name, or nil. A colon in the path stands for
// a dot in a name.
func (o object) at(path string) any {
	var here any = map[string]any(o)
	for name := range strings.SplitSeq(path, ".") {
		name = strings.ReplaceAll(name, ":", ".")
		switch parent := here.(type) {
		case map[string]any:
			here = parent[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(parent) {
				here = parent[i]
				continue
			}
			return nil
		default:
			return nil
		}
	}
	return here
}

func (o object) text(path string) string {
	text, _ := o.at(path).(string)
	return text
}

func (o object) number(path string) int {
	number, _ := o.at(path).(float64)
	return int(number)
}

func (o object) object(path string) object {
	child, _ := o.at(path).(map[string]any)
	return child
}

func (o object) list(path string) (all []object) {
	list, _ := o.at(path).([]any)
	for _, one := range list {
		child, _ := one.(map[string]any)
		all = append(all, child)
	}
	return all
}

// named returns the entry with the given name in a list.
func (o object) named(list, name string) object {
	for _, one := range o.list(list) {
		if one.text("name") == name {
			return one
		}
	}
	return nil
}

// manifest is a file in deploy/kubernetes, with a workload and the objects that belong to it.
type manifest struct {
	text      string
	objects   map[string][]object // by kind
	workload  object              // the Deployment or StatefulSet
	pod       object              // the spec of its pods
	container object
	wrong     []string
}

func (m *manifest) want(holds bool, format string, args ...any) {
	if !holds {
		m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
	}
}

func readManifest(text, kind string) *manifest {
	m := &manifest{text: text, objects: make(map[string][]object)}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		m.want(err == nil, "not YAML: %v", err)
		if err != nil {
			break
		}
		asJSON, err := json.Marshal(document) // so that all numbers have the same type
		m.want(err == nil, "not JSON: %v", err)
		var o object
		m.want(json.Unmarshal(asJSON, &o) == nil, "not an object")
		m.objects[o.text("kind")] = append(m.objects[o.text("kind")], o)
	}
	m.workload = m.one(kind)
	m.pod = m.workload.object("spec.template.spec")
	m.want(len(m.pod.list("containers")) == 1, "there must be one container")
	m.container = m.pod.object("containers.0")
	return m
}

// This method returns the only object of a kind.
func (m *manifest) one(kind string) object {
	m.want(len(m.objects[kind]) == 1, "there must be one %s", kind)
	if len(m.objects[kind]) == 0 {
		return nil
	}
	return m.objects[kind][0]
}

// The selects method checks that a selector is not empty, and that it matches the labels of the
// pods.
func (m *manifest) selects(what string, selector object) {
	labels := m.workload.object("spec.template.metadata.labels")
	for name, value := range selector {
		m.want(labels[name] == value, "the %s does not select the pods", what)
	}
	m.want(len(selector) > 0, "the %s selects all pods", what)
}

// mounted returns the volume that contains the given file, and the file's name in that volume.
func (m *manifest) mounted(file string) (volume object, name string) {
	for _, mount := range m.container.list("volumeMounts") {
		if path.Dir(file) == mount.text("mountPath") {
			return m.pod.named("volumes", mount.text("name")), path.Base(file)
		}
	}
	return nil, ""
}

// port returns the number of a port of the container.
func (m *manifest) port(name any) int {
	for _, p := range m.container.list("ports") {
		if p.at("name") == name || p.at("containerPort") == name {
			return p.number("containerPort")
		}
	}
	m.want(false, "the container has no port %v", name)
	return 0
}

// Every workload must pass the checks in the method common.
func (m *manifest) common(uid int) {
	m.want(len(m.objects["Secret"]) == 0, "a secret does not belong in a file that is checked in")
	m.selects("workload", m.workload.object("spec.selector.matchLabels"))
	m.selects("Service", m.one("Service").object("spec.selector"))
	policy := m.one("NetworkPolicy")
	m.selects("NetworkPolicy", policy.object("spec.podSelector.matchLabels"))
	m.want(fmt.Sprint(policy.at("spec.policyTypes")) == "[Ingress]", "the NetworkPolicy does not control ingress")
	for _, rule := range policy.list("spec.ingress") {
		m.want(len(rule.list("ports")) == 1 && len(rule.list("from")) == 1, "a rule of the NetworkPolicy is not for one port and for one peer")
		m.port(rule.at("ports.0.port"))
	}
	for _, p := range m.one("Service").list("spec.ports") {
		m.want(m.port(p.at("targetPort")) == p.number("port"), "the Service has another port")
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		m.want(m.container.at(probe+".tcpSocket.port") == m.container.at("ports.0.name"), "the %s does not ask the first port", probe)
	}
	get := func(name string) any { // a setting of the container overrides the same setting of the pod
		if own := m.container.at("securityContext." + name); own != nil {
			return own
		}
		return m.pod.at("securityContext." + name)
	}
	m.want(get("runAsUser") == float64(uid) && get("runAsGroup") == float64(uid) && get("fsGroup") == float64(uid), "the user and the groups are not %d", uid)
	m.want(get("runAsNonRoot") == true && get("readOnlyRootFilesystem") == true && get("allowPrivilegeEscalation") == false, "the container may do too much")
	m.want(fmt.Sprint(get("capabilities")) == "map[drop:[ALL]]", "capabilities are left")
	m.want(m.pod.text("securityContext.seccompProfile.type") == "RuntimeDefault", "the seccomp profile is missing")
	m.want(m.pod.at("automountServiceAccountToken") == false, "automountServiceAccountToken: false is missing")
	m.want(m.pod.at("hostNetwork") == nil, "no network policy applies to the network of the host")
	m.want(m.container.text("resources.requests.memory") != "" && m.container.text("resources.limits.memory") != "", "the memory is missing")
	for _, mount := range m.container.list("volumeMounts") {
		m.want(mount.at("subPath") == nil, "%s is mounted with a subPath, so the running container never gets a new version", mount.text("name"))
		volume := m.pod.named("volumes", mount.text("name"))
		m.want(volume == nil || mount.at("readOnly") == true, "%s is not mounted read-only", mount.text("name"))
		if secret := volume.object("secret"); secret != nil {
			m.want(secret.number("defaultMode") == 0o440, "the mode of %s is not 0440", mount.text("name"))
		}
	}
}

// redisSecret is the secret made by the commands at the top of redis.yaml.
type redisSecret struct{ name, acl, url string }

func (m *manifest) secret(password string) (s redisSecret) {
	match := regexp.MustCompile(`printf '(.*)' "\$PASSWORD" > users\.acl\n#   kubectl create secret generic ([a-z-]+) --from-file=users\.acl \\\n#     --from-literal=url="([^"]+)"`).FindStringSubmatch(m.text)
	if match == nil {
		m.want(false, "the commands that make the secret are missing")
		return s
	}
	s.acl = strings.ReplaceAll(strings.ReplaceAll(match[1], `\n`, "\n"), "%s", password)
	s.name, s.url = match[2], strings.ReplaceAll(match[3], "$PASSWORD", password)
	return s
}

// settings returns the text of redis.conf.
func (m *manifest) settings() string {
	return m.one("ConfigMap").object("data").text("redis:conf")
}

func setting(settings, name string) string {
	match := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindStringSubmatch(settings)
	if match == nil {
		return ""
	}
	return match[1]
}

// mebibytes reads a size such as 128mb, 128MiB or 128Mi.
func mebibytes(text string) int {
	n, err := strconv.Atoi(strings.TrimRight(strings.ToLower(text), "bim"))
	if err != nil {
		return -1
	}
	return n
}

// reviewRedis checks redis.yaml.
func reviewRedis(text string) *manifest {
	m := readManifest(text, "StatefulSet")
	m.common(999)
	m.want(m.workload.number("spec.replicas") == 1, "there must be one replica")
	m.want(m.workload.text("spec.serviceName") == m.one("Service").text("metadata.name"), "the Service has another name")
	command, _ := m.container.at("command").([]any)
	m.want(len(command) == 2 && command[0] == "redis-server", "the command is not redis-server with a file")
	settings := m.settings()
	config, name := m.mounted(m.container.text("command.1"))
	m.want(config.text("configMap.name") == m.one("ConfigMap").text("metadata.name") && name == "redis.conf" && settings != "", "the settings are not where the command looks")
	secret := m.secret("x")
	users, name := m.mounted(setting(settings, "aclfile"))
	m.want(users.text("secret.secretName") == secret.name && users.text("secret.items.0.key") == "users.acl" && users.text("secret.items.0.path") == name, "the users are not where the settings say")
	m.want(strings.HasPrefix(secret.acl, "user default off\n"), "there is a user without a password")
	data := ""
	for _, mount := range m.container.list("volumeMounts") {
		if mount.text("mountPath") == setting(settings, "dir") {
			data = mount.text("name")
		}
	}
	m.want(data != "" && m.workload.text("spec.volumeClaimTemplates.0.metadata.name") == data, "the data is not on a disk that is kept")
	m.want(setting(settings, "port") == strconv.Itoa(m.port("redis")), "the port is not that of the settings")
	memory, limit := mebibytes(setting(settings, "maxmemory")), mebibytes(m.container.text("resources.limits.memory"))
	m.want(0 < memory && 2*memory < limit, "the memory does not fit: maxmemory %d, limit %d", memory, limit)
	for name, value := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "save": `""`} {
		m.want(setting(settings, name) == value, "%s is not %s", name, value)
	}
	return m
}

// reviewServer checks server.yaml, with the Redis that it uses.
func reviewServer(text string, redis *manifest) *manifest {
	m := readManifest(text, "Deployment")
	m.common(65532)
	m.selects("PodDisruptionBudget", m.one("PodDisruptionBudget").object("spec.selector.matchLabels"))
	m.selects("topology spread", m.pod.object("topologySpreadConstraints.0.labelSelector.matchLabels"))
	m.want(m.workload.number("spec.replicas") == 3, "there must be three replicas")
	m.want(m.workload.at("spec.strategy.rollingUpdate.maxUnavailable") == float64(0), "an update takes replicas away")
	m.want(m.container.text("image") == "release-server:1.0.0", "the image has another name")

	// The comment in server.yaml says what the server reads and where it listens.
	// TestAServerWithTheseManifestsHasKeysAndSingleUse opens the keys and the store as the comment
	// says.
	read := make(map[string]bool)
	for _, match := range regexp.MustCompile(`os\.Getenv\("(\w+)"\)`).FindAllStringSubmatch(text, -1) {
		read[match[1]] = true
		m.want(m.container.named("env", match[1]) != nil, "the variable %s is missing", match[1])
	}
	for _, variable := range m.container.list("env") {
		m.want(read[variable.text("name")] || variable.text("name") == "GOMEMLIMIT", "nothing reads the variable %s", variable.text("name"))
	}
	for name, port := range map[string]string{"mcp": "MCP on port ", "metrics": "otelseal on port "} {
		m.want(strings.Contains(text, fmt.Sprint(port, m.port(name))), "the comment names another port than that of %s", name)
	}
	for _, rule := range m.one("NetworkPolicy").list("spec.ingress") {
		namespace := rule.text("from.0.namespaceSelector.matchLabels.kubernetes:io/metadata:name")
		m.want((namespace == "monitoring") == (rule.number("ports.0.port") == m.port("metrics")), "the NetworkPolicy opens a port to %q", namespace)
	}
	keys, name := m.mounted(m.container.named("env", "KEYS_FILE").text("value"))
	m.want(keys.text("secret.secretName") == "tripseal-keys" && name == "keys", "the keys are not where KEYS_FILE says")
	goal, limit := mebibytes(m.container.named("env", "GOMEMLIMIT").text("value")), mebibytes(m.container.text("resources.limits.memory"))
	m.want(0 < goal && goal < limit, "the memory does not fit: GOMEMLIMIT %d, limit %d", goal, limit)
	ends := 0
	if match := regexp.MustCompile(`http\.Server\.Shutdown, within (\d+) seconds`).FindStringSubmatch(text); match != nil {
		ends, _ = strconv.Atoi(match[1])
	}
	sleep, grace := m.container.number("lifecycle.preStop.sleep.seconds"), m.pod.number("terminationGracePeriodSeconds")
	m.want(ends > 0 && sleep > 0 && grace >= sleep+ends+5, "the pod ends after %d seconds, but the server needs %d and %d", grace, sleep, ends)

	secret := redis.secret("x")
	ref := m.container.named("env", "REDIS_URL").object("valueFrom.secretKeyRef")
	m.want(ref.text("name") == secret.name && ref.text("key") == "url", "the URL of Redis is not in the secret")
	at, err := url.Parse(secret.url)
	service := redis.one("Service")
	m.want(err == nil && at.Host == fmt.Sprintf("%s:%d", service.text("metadata.name"), service.number("spec.ports.0.port")), "the URL of Redis is not that of its Service")
	m.selects("NetworkPolicy of Redis", redis.one("NetworkPolicy").object("spec.ingress.0.from.0.podSelector.matchLabels"))
	return m
}

func TestTheManifestsOfTheServerFitTogether(t *testing.T) {
	server, redis := deployed(t, "kubernetes/server.yaml"), deployed(t, "kubernetes/redis.yaml")
	all := func(server, redis string) []string {
		r := reviewRedis(redis)
		return slices.Concat(reviewServer(server, r).wrong, r.wrong)
	}
	for _, w := range all(server, redis) {
		t.Error(w)
	}
	for _, c := range []struct{ old, new, want string }{
		{"kind: PodDisruptionBudget", "kind: Secret", "a secret does not belong"},
		{"kind: PodDisruptionBudget", "kind: Role", "one PodDisruptionBudget"},
		{"  selector:\n    matchLabels:\n      app.kubernetes.io/name: release-go", "  selector:\n    matchLabels:\n      app.kubernetes.io/name: x", "the workload does not select"},
		{"  selector:\n    app.kubernetes.io/name: release-go", "  selector:\n    app.kubernetes.io/name: x", "the Service does not select"},
		{"podSelector:\n    matchLabels:\n      app.kubernetes.io/name: release-go", "podSelector: {}", "the NetworkPolicy selects all"},
		{"maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: release-go", "maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: x", "the PodDisruptionBudget does not"},
		{"labelSelector:\n            matchLabels:\n              app.kubernetes.io/name: release-go", "labelSelector:\n            matchLabels:\n              app.kubernetes.io/name: x", "the topology spread does not"},
		{"policyTypes: [Ingress]", "policyTypes: [Egress]", "does not control ingress"},
		{"        - port: 9090\n", "        - port: 9091\n", "has no port 9091"},
		{"name: monitoring", "name: gateway", "opens a port to"},
		{"    - from:\n        - namespaceSelector:\n            matchLabels:\n              kubernetes.io/metadata.name: gateway # replace: the namespace of your gateway\n      ports:", "    - ports:", "for one peer"},
		{"port: 8080\n      targetPort", "port: 80\n      targetPort", "the Service has another port"},
		{"targetPort: mcp", "targetPort: http", "has no port http"},
		{"port: mcp\n            periodSeconds: 5", "port: metrics\n            periodSeconds: 5", "the readinessProbe does not"},
		{"containerPort: 8080", "containerPort: 8081", "the comment names another port than that of mcp"},
		{"replicas: 3", "replicas: 1", "three replicas"},
		{"maxUnavailable: 0", "maxUnavailable: 1", "takes replicas away"},
		{"image: release-server:1.0.0", "image: release-server", "the image"},
		{"runAsUser: 65532", "runAsUser: 0", "the user and the groups"},
		{"fsGroup: 65532", "fsGroup: 0", "the user and the groups"},
		{"            runAsNonRoot: true", "            runAsNonRoot: false", "may do too much"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may do too much"},
		{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "may do too much"},
		{"drop: [ALL]", "drop: [NET_RAW]", "capabilities"},
		{"type: RuntimeDefault", "type: Unconfined", "seccomp"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true", "automountServiceAccountToken"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: false\n      hostNetwork: true", "the network of the host"},
		{"            limits:\n              memory: 256Mi\n", "", "the memory is missing"},
		{"value: 200MiB", "value: 300MiB", "the memory does not fit"},
		{"- name: KEYS_FILE", "- name: KEY_FILE", "the variable KEYS_FILE is missing"},
		{"- name: KEYS_FILE", "- name: KEY_FILE", "nothing reads the variable KEY_FILE"},
		{"value: /etc/tripseal/keys/keys", "value: /etc/tripseal/keys", "not where KEYS_FILE says"},
		{"secretName: tripseal-keys", "secretName: keys", "not where KEYS_FILE says"},
		{"defaultMode: 0440", "defaultMode: 0444", "the mode of keys"},
		{"mountPath: /etc/tripseal/keys\n", "mountPath: /etc/tripseal/keys\n              subPath: keys\n", "subPath"},
		{"mountPath: /etc/tripseal/keys\n              readOnly: true", "mountPath: /etc/tripseal/keys", "read-only"},
		{"terminationGracePeriodSeconds: 45", "terminationGracePeriodSeconds: 30", "the pod ends after 30"},
		{"seconds: 10\n", "seconds: 20\n", "the server needs 20"},
		{"key: url", "key: uri", "the URL of Redis is not in the secret"},
	} {
		notice(t, c.new, all(replaced(t, server, c.old, c.new), redis), c.want)
	}
	for _, c := range []struct{ old, new, want string }{
		{"replicas: 1", "replicas: 2", "one replica"},
		{"serviceName: release-redis", "serviceName: redis", "the Service has another name"},
		{"[redis-server, /etc/redis/config/redis.conf]", "[redis-server]", "the command"},
		{"config/redis.conf]", "redis.conf]", "not where the command looks"},
		{"aclfile /etc/redis/users/users.acl", "aclfile /etc/redis/users.acl", "not where the settings say"},
		{"items:\n              - key: users.acl", "items:\n              - key: acl", "not where the settings say"},
		{"user default off", "user default on nopass", "a user without a password"},
		{"printf 'user", "echo 'user", "the commands that make the secret"},
		{"dir /data", "dir /tmp", "on a disk that is kept"},
		{"port 6379\n", "port 6380\n", "the port is not that of the settings"},
		{"maxmemory 128mb", "maxmemory 200mb", "the memory does not fit"},
		{"maxmemory-policy noeviction", "maxmemory-policy allkeys-lru", "maxmemory-policy is not"},
		{"appendonly yes", "appendonly no", "appendonly is not"},
		{"appendfsync always", "appendfsync everysec", "appendfsync is not"},
		{"no-appendfsync-on-rewrite no", "no-appendfsync-on-rewrite yes", "no-appendfsync-on-rewrite is not"},
		{"@release-redis:6379", "@redis:6379", "the URL of Redis is not that of its Service"},
		{"name: release-go #", "name: release #", "the NetworkPolicy of Redis does not select"},
		{"fsGroup: 999", "fsGroup: 1000", "the user and the groups"},
	} {
		notice(t, c.new, all(server, replaced(t, redis, c.old, c.new)), c.want)
	}
}
