// Package image_test checks the container image and the manifests that run it on Kubernetes. They
// must do what their comments and docs/kubernetes.md say.
//
// The tests of the manifests always run. The tests of the image need root and Linux; test/image/run
// builds the image and runs these tests.
package image_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// manifests are the files in deploy/kubernetes that run the proxy.
var manifests = []string{"proxy-sidecar.yaml", "proxy-deployment.yaml"}

func readManifest(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// cluster has the objects that a manifest makes.
type cluster struct {
	configMaps  []configMap
	deployments []deployment
	services    []service
	policies    []networkPolicy
	budgets     []disruptionBudget
	kinds       map[string]int
}

type metadata struct {
	Name   string
	Labels map[string]string
}

type selector struct{ MatchLabels map[string]string }

type configMap struct {
	Metadata metadata
	Data     map[string]string
}

type deployment struct {
	Spec struct {
		Replicas int
		Selector selector
		Template struct {
			Metadata metadata
			Spec     pod
		}
	}
}

type pod struct {
	AutomountServiceAccountToken  *bool
	TerminationGracePeriodSeconds int
	HostNetwork                   bool
	SecurityContext               struct {
		RunAsNonRoot   bool
		FSGroup        int
		SeccompProfile struct{ Type string }
	}
	TopologySpreadConstraints []struct{ LabelSelector selector }
	Containers                []container
	Volumes                   []volume
}

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name          string
		ContainerPort int
	}
	LivenessProbe, ReadinessProbe probe
	Resources                     struct{ Requests, Limits map[string]string }
	Lifecycle                     struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	SecurityContext struct {
		RunAsUser, RunAsGroup                int
		RunAsNonRoot, ReadOnlyRootFilesystem bool
		AllowPrivilegeEscalation             *bool
		Capabilities                         struct{ Add, Drop []string }
	}
	VolumeMounts []struct {
		Name, MountPath, SubPath, SubPathExpr string
		ReadOnly                              bool
	}
}

type probe struct {
	HTTPGet struct {
		Path, Scheme string
		Port         any
	}
	TimeoutSeconds int
}

type volume struct {
	Name      string
	ConfigMap struct{ Name string }
	Secret    struct {
		SecretName  string
		DefaultMode int
	}
}

type service struct {
	Metadata metadata
	Spec     struct {
		Selector map[string]string
		Ports    []struct {
			Port       int
			TargetPort any
		}
	}
}

type disruptionBudget struct {
	Spec struct{ Selector selector }
}

type networkPolicy struct {
	Spec struct {
		PodSelector selector
		PolicyTypes []string
		Ingress     []struct {
			From []struct {
				PodSelector, NamespaceSelector selector
			}
			Ports []struct{ Port any }
		}
	}
}

// parse reads a manifest. It does not check whether Kubernetes knows every field: test/image/run
// checks that, with the schemas of Kubernetes.
func parse(text []byte) (*cluster, error) {
	c := &cluster{kinds: make(map[string]int)}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document map[string]any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return nil, err
		}
		asJSON, err := json.Marshal(document) // so that struct fields need no tags
		if err != nil {
			return nil, err
		}
		kind, _ := document["kind"].(string)
		c.kinds[kind]++
		switch kind {
		case "ConfigMap":
			err = add(&c.configMaps, asJSON)
		case "Deployment":
			err = add(&c.deployments, asJSON)
		case "Service":
			err = add(&c.services, asJSON)
		case "NetworkPolicy":
			err = add(&c.policies, asJSON)
		case "PodDisruptionBudget":
			err = add(&c.budgets, asJSON)
		}
		if err != nil {
			return nil, err
		}
	}
}

func add[T any](to *[]T, document []byte) error {
	var value T
	err := json.Unmarshal(document, &value)
	*to = append(*to, value)
	return err
}
