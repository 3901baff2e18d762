package image_test

import (
	"slices"
	"strings"
	"testing"
)

// TestAManifestWithAMistakeIsNoticed puts one mistake at a time into the manifests. Every mistake
// must be found, which shows that every comparison can fail.
func TestAManifestWithAMistakeIsNoticed(t *testing.T) {
	flags := proxyFlags(t)
	const both, sidecar, separate = "", "proxy-sidecar.yaml", "proxy-deployment.yaml"
	for _, m := range []struct{ in, old, new, want string }{
		{both, "kind: ConfigMap", "kind: Secret", "a secret does not belong"},
		{both, "kind: PodDisruptionBudget", "kind: Role", "one PodDisruptionBudget"},
		{both, "- name: proxy\n", "- name: other\n", "must be the proxy"},
		{both, "replicas: 2", "replicas: 1", "one replica"},
		{both, "spec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: release", "spec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: x", "does not select its pods"},
		{both, "maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: release", "maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: x", "the PodDisruptionBudget does not select"},
		{both, "labelSelector:\n            matchLabels:\n              app.kubernetes.io/name: release", "labelSelector:\n            matchLabels:\n              app.kubernetes.io/name: x", "the topology spread does not select"},

		{both, "image: tripseal:0.1.0", "image: tripseal:latest", "the image"},
		{both, "args: [proxy", "command: [/bin/tripseal]\n          args: [proxy", "has an entrypoint"},
		{both, "args: [proxy, ", "args: [prox, ", "begin with proxy"},
		{both, "args: [proxy, ", "args: [proxy, --drain-time=5s, ", "there is no flag --drain-time"},
		{both, "--config, /etc/tripseal/config/", "--config, /etc/tripseal/", "no volume has the file of --config"},
		{both, "--config, ", "--settings, ", "there is no flag --settings"},
		{both, "config/proxy.yaml]", "config/tripseal.yaml]", "has the settings"},
		{both, "configMap:\n            name: release", "configMap:\n            name: x", "has the settings"},
		{both, "    log-format: json\n", "    log_format: json\n", "there is no setting log_format"},
		{both, "    drain: 30s\n", "    drain: 30s\n    [\n", "the settings are not YAML"},
		{both, "- name: GOMEMLIMIT", "- name: TRIPSEAL_MEMORY", "nothing reads the variable"},
		{both, "    drain: 30s\n", "    drain: 30s\n    redis-env: REDIS_URL\n", "the variable REDIS_URL of redis-env is missing"},

		{both, "keys: /etc/tripseal/keys/keys", "keys: /etc/tripseal/keys", "no volume has the file of keys"},
		{both, "keys: /etc/tripseal/keys/keys", "keys: /etc/tripseal/keys/key", `has no file "key"`},
		{both, "    keys: /etc/tripseal/keys/keys\n", "", "the keys are missing"},
		{both, "secretName: tripseal-keys", "secretName: keys", `the secret "keys" has no file`},
		{both, "defaultMode: 0440", "defaultMode: 0444", "the mode of the files"},
		{both, "mountPath: /etc/tripseal/keys\n", "mountPath: /etc/tripseal/keys\n              subPath: keys\n", "subPath"},
		{both, "mountPath: /etc/tripseal/keys\n              readOnly: true", "mountPath: /etc/tripseal/keys", "read-only"},
		{separate, "tls-key: /etc/tripseal/tls/tls.key", "tls-key: /etc/tripseal/tls/key.pem", `has no file "key.pem"`},
		{separate, "mountPath: /etc/ssl/certs", "mountPath: /etc/ssl", "the certificates of authorities are missing"},

		{both, "    admin: \":9090\"", "    admin: \":9091\"", "the port admin is not that of admin"},
		{both, "    admin: \":9090\"", "    admin: \"127.0.0.1:9090\"", "other machines do not reach"},
		{sidecar, "containerPort: 8080", "containerPort: 8081", "the port mcp is not that of listen"},
		{separate, "listen: \":8443\"", "listen: \":8444\"", "the port mcp is not that of listen"},
		{both, "path: /healthz", "path: /health", "a probe asks for"},
		{both, "path: /readyz", "path: /healthz", "a probe asks for"},
		{both, "path: /readyz\n              port: admin", "path: /readyz\n              port: mcp", "is not on the port of admin"},
		{both, "path: /readyz\n", "path: /readyz\n              scheme: HTTPS\n", "must speak plain HTTP"},
		{both, "timeoutSeconds: 6", "timeoutSeconds: 1", "gives up before"},
		{both, "targetPort: mcp", "targetPort: admin", "the Service leads to port admin"},
		{both, "spec:\n  selector:\n    app.kubernetes.io/name: release", "spec:\n  selector:\n    app.kubernetes.io/name: x", "no Service selects"},

		{both, "runAsUser: 65532", "runAsUser: 1000", "the user and group are not"},
		{both, "runAsGroup: 65532", "runAsGroup: 0", "the user and group are not"},
		{both, "fsGroup: 65532", "fsGroup: 0", "may read the secrets"},
		{both, "            runAsNonRoot: true", "            runAsNonRoot: false", "runAsNonRoot"},
		{both, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "readOnlyRootFilesystem"},
		{both, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation"},
		{both, "drop: [ALL]", "drop: [NET_RAW]", "capabilities"},
		{both, "type: RuntimeDefault", "type: Unconfined", "seccomp"},
		{both, "      automountServiceAccountToken: false\n", "", "automountServiceAccountToken"},
		{both, "      automountServiceAccountToken: false\n", "      automountServiceAccountToken: false\n      hostNetwork: true\n", "the network of the host"},
		{both, "budget: 64MiB", "budget: 256MiB", "the memory does not fit"},
		{both, "value: 200MiB", "value: 256MiB", "the memory does not fit"},
		{both, "              cpu: 100m\n", "", "request for CPU"},
		{both, "limits:\n", "limits:\n              cpu: 100m\n", "a limit of CPU"},
		{both, "terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 30", "too short"},
		{both, "    drain-delay: 10s\n", "", "drain-delay is missing"},
		{sidecar, "seconds: 40", "seconds: 10", "ends before the proxy"},
		{sidecar, "- name: server\n", "- name: server\n          ports:\n            - containerPort: 9000\n", "loopback only"},

		{both, "upstream: http://", "upstream: http://x/", "has no port"},
		{both, "policyTypes: [Ingress]", "policyTypes: [Egress]", "one NetworkPolicy for the pods of the proxy"},
		{both, "      ports:\n        - port: 9090\n", "      ports:\n        - port: 9091\n", "opens the port 9091"},
		{both, "      ports:\n        - port: 9090\n", "", "is not for one port"},
		{both, "    - from:\n        - namespaceSelector:\n            matchLabels:\n              kubernetes.io/metadata.name: monitoring # replace: the namespace of your monitoring\n      ports:", "    - ports:", "everyone reaches the port of admin"},
		{sidecar, "    - from:\n        - namespaceSelector:\n            matchLabels:\n              kubernetes.io/metadata.name: gateway # replace: the namespace of your gateway\n      ports:", "    - ports:", "everyone reaches the proxy"},
		{sidecar, "upstream: http://127.0.0.1:9000", "upstream: http://10.0.0.1:9000", "neither in the pod nor behind a Service"},
		{separate, "upstream: http://release-server:9000", "upstream: http://release:9000", "there is no Service release"},
		{separate, "upstream: http://release-server:9000", "upstream: http://release-server:9001", "has no port 9001"},
		{separate, "app.kubernetes.io/name: release-server # replace", "app.kubernetes.io/name: server # replace", "one NetworkPolicy for the pods of the server"},
		{separate, "- podSelector:\n            matchLabels:\n              app.kubernetes.io/name: release-proxy", "- podSelector: {}", "not only the proxy reaches the server"},
		{separate, "        - port: 9000", "        - port: 9090", "is not for its port"},
		{separate, "        - port: 9000", "        - port: 9000\n    - from:\n        - podSelector: {}", "not only the proxy reaches the server"},
	} {
		for _, name := range manifests {
			if m.in != both && m.in != name {
				continue
			}
			text := string(readManifest(t, name))
			changed := strings.Replace(text, m.old, m.new, 1)
			if changed == text {
				t.Errorf("%s has no %q", name, m.old)
				continue
			}
			wrong := mistakesIn([]byte(changed), flags)
			if !slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, m.want) }) {
				t.Errorf("%s with %q: %q, want %q", name, m.new, wrong, m.want)
			}
		}
	}
}
