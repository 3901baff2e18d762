package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
)

// The types are the parts of CycloneDX 1.6 that an SBOM of a Go binary needs.
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Time       string     `json:"timestamp"`
		Component  component  `json:"component"`
		Properties []property `json:"properties"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Hashes     []hash     `json:"hashes,omitempty"`
		URL        string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
)

// sbom returns a list of all modules in a binary, in the format CycloneDX. The modules come
// only from what the Go linker recorded in the binary, so that a reader can compare the list
// with the output of go version -m. The binary does not record which modules a module
// requires. So the list says that the command depends on every other module in the binary.
func sbom(info *debug.BuildInfo, binary []byte, at time.Time) ([]byte, error) {
	sum := sha256.Sum256(binary)
	main := moduleComponent(&info.Main)
	main.Type = "application"
	main.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	doc := document{
		Format:   "CycloneDX",
		Spec:     "1.6",
		Serial:   serial(sum),
		Version:  1,
		Metadata: metadata{Time: at.UTC().Format(time.RFC3339), Component: main},
	}
	for _, setting := range info.Settings {
		doc.Metadata.Properties = append(doc.Metadata.Properties, property{"go:build:" + setting.Key, setting.Value})
	}
	standard := component{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	standard.URL = packageURL(standard.Name, standard.Version)
	standard.Ref = standard.URL
	doc.Components = []component{standard}
	for _, m := range info.Deps {
		doc.Components = append(doc.Components, moduleComponent(m))
	}
	contains := dependency{Ref: main.Ref}
	for _, c := range doc.Components {
		contains.On = append(contains.On, c.Ref)
	}
	doc.Dependencies = []dependency{contains}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(doc)
	return text.Bytes(), err
}

// moduleComponent returns the component of a module. It writes the module's checksum as a
// property, not as a hash of the component. Readers of CycloneDX expect that a hash is the
// checksum of one file, but Go's checksum of a module is the checksum of a list of files.
func moduleComponent(m *debug.Module) component {
	c := component{Type: "library", Name: m.Path, Version: m.Version, URL: packageURL(m.Path, m.Version)}
	c.Ref = c.URL
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

func packageURL(path, version string) string {
	elements := strings.Split(path, "/")
	for i := range elements {
		elements[i] = url.PathEscape(elements[i])
	}
	return "pkg:golang/" + strings.Join(elements, "/") + "@" + url.QueryEscape(version) // escapes the + of +incompatible
}

// serial returns a UUID of version 8 that is made from a checksum, so that the same
// binary always has the same UUID.
func serial(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
