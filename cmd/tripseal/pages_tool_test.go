package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// pageTool replaces programs that the commands in the pages use. A machine with only Go may lack
// these programs. The first argument names the program.
func pageTool() {
	tools := map[string]func(args []string) error{
		"server": servePages, "curl": pageCurl, "age-keygen": pageKeygen, "kubectl": pageKubectl, "settings": printSettings, "mint": mintForPage,
	}
	if err := tools[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newPageServer returns a server without protection, whose tools take any arguments and ask
// for a confirmation.
func newPageServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "pages", Version: "1"}, nil)
	for _, name := range []string{"deploy", "release"} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.RequestState == "" {
				return &mcp.CallToolResult{RequestState: "step=1", InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "Really?", RequestedSchema: map[string]any{
					"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}, "required": []string{"ok"},
				}}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	}
	return server
}

func servePages([]string) error {
	return newPageServer().Run(context.Background(), &mcp.StdioTransport{})
}

func pageCurl(args []string) error {
	method := http.MethodGet
	if args[0] == "-sI" {
		method, args = http.MethodHead, args[1:]
	}
	req, err := http.NewRequest(method, args[0], nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if method == http.MethodHead {
		return res.Header.Write(os.Stdout)
	}
	_, err = io.Copy(os.Stdout, res.Body)
	return err
}

// pageKeygen does what age-keygen -o FILE does.
func pageKeygen(args []string) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], fmt.Appendf(nil, "# public key: %s\n%s\n", identity.Recipient(), identity), 0o600)
}

// mintForPage seals a token for the user alice and the tool deploy, with empty arguments. It writes
// the token to a file with the name "token". The test of docs/operations.md inspects this token
// with other arguments, so that the token is rejected.
func mintForPage([]string) error {
	file, err := keyfile.Read("keys")
	if err != nil {
		return err
	}
	key, err := file.Schedule().OpenersAt(time.Now())[0].Open(context.Background(), nil)
	if err != nil {
		return err
	}
	ring, err := tripseal.NewRing(key)
	if err != nil {
		return err
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "release.example.com"})
	if err != nil {
		return err
	}
	round, err := boundary.Open(context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy", Arguments: []byte(`{}`), Principal: tripseal.User("alice")}, "")
	if err != nil {
		return err
	}
	state := "step=1"
	token, err := boundary.Seal(context.Background(), &round, &state)
	if err != nil {
		return err
	}
	return os.WriteFile("token", []byte(token), 0o600)
}

// manifests returns the object with this kind and name from the manifests that docs/kubernetes.md
// is about.
func manifests(kind, name string) (map[string]any, error) {
	for _, file := range []string{"proxy-sidecar.yaml", "proxy-deployment.yaml"} {
		text, err := os.Open(filepath.Join(os.Getenv("PAGE_ROOT"), "deploy/kubernetes", file))
		if err != nil {
			return nil, err
		}
		defer text.Close()
		for decoder := yaml.NewDecoder(text); ; {
			var document map[string]any
			if err := decoder.Decode(&document); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			if document["kind"] == kind && valueAt(document, "metadata", "name") == name {
				return document, nil
			}
		}
	}
	return nil, fmt.Errorf("no manifest has a %s with the name %s", kind, name)
}

// valueAt returns the value at a path in a document, or nil if there is none.
func valueAt(document any, path ...string) any {
	for _, name := range path {
		members, _ := document.(map[string]any)
		document = members[name]
	}
	return document
}

func printSettings([]string) error {
	document, err := manifests("ConfigMap", "release")
	fmt.Print(valueAt(document, "data", "proxy.yaml"))
	return err
}

// pageKubectl runs in place of kubectl. It compares a command with the manifests: names of objects,
// containers, labels, ports and paths must be right. It keeps secrets as files in the current
// folder.
func pageKubectl(args []string) error {
	var words, inside []string
	flags := map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--":
			inside, i = args[i+1:], len(args)
		case slices.Contains([]string{"-c", "-f", "-l", "-o"}, args[i]):
			flags[args[i]] = args[i+1]
			i++
		case strings.HasPrefix(name, "-") && (hasValue || name == "--rm" || name == "-it"):
			flags[name] = value
		case strings.HasPrefix(name, "-"):
			return fmt.Errorf("unknown flag %s", name)
		default:
			words = append(words, args[i])
		}
	}
	last := words[len(words)-1]
	switch strings.Join(words[:min(2, len(words))], " ") {
	case "create secret":
		if err := mustSay("secretName: " + last); err != nil {
			return err
		}
		if words[2] == "tls" {
			_, err := os.Stat(flags["--cert"])
			_, keyErr := os.Stat(flags["--key"])
			return errors.Join(err, keyErr)
		}
		text, err := os.ReadFile(flags["--from-file"])
		if err != nil {
			return err
		}
		if flags["--dry-run"] == "client" && flags["-o"] == "yaml" {
			fmt.Print(base64.StdEncoding.EncodeToString(text))
			return nil
		}
		secret, err := os.OpenFile("secret-"+last, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer secret.Close()
		_, err = secret.Write(text)
		return err
	case "replace":
		text, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, os.Stdin))
		if err != nil {
			return err
		}
		if _, err := os.Stat("secret-tripseal-keys"); err != nil {
			return err
		}
		return os.WriteFile("secret-tripseal-keys", text, 0o600)
	case "get secret":
		text, err := os.ReadFile("secret-" + last)
		if err == nil && flags["-o"] != "jsonpath={.data.keys}" {
			err = fmt.Errorf("unknown path %s", flags["-o"])
		}
		fmt.Print(base64.StdEncoding.EncodeToString(text))
		return err
	case "create configmap":
		return mustSay("configMap: {name: "+last+"}", "configMap:\n            name: "+last)
	case "apply":
		_, err := os.Stat(filepath.Join(os.Getenv("PAGE_ROOT"), "deploy/kubernetes", flags["-f"]))
		return err
	case "rollout status", "rollout restart":
		_, err := podOf(last, "")
		return err
	case "run try":
		return mustSay(strings.TrimSuffix(inside[len(inside)-1], "/mcp"))
	case "logs":
		label, name, _ := strings.Cut(flags["-l"], "=")
		pod, err := podOf("deployment/"+name, flags["-c"])
		if err != nil || valueAt(pod, "metadata", "labels", label) != name {
			return fmt.Errorf("no pod has the label %s: %v", flags["-l"], err)
		}
		text, err := os.ReadFile("served.log")
		fmt.Print(string(text))
		return err
	}
	pod, err := podOf(words[1], flags["-c"])
	if err != nil {
		return err
	}
	switch words[0] {
	case "port-forward":
		return mustSay("containerPort: " + last)
	case "exec":
		for i, arg := range inside {
			if dir, name := filepath.Split(arg); strings.HasPrefix(dir, "/etc/") {
				if !strings.Contains(fmt.Sprint(pod), "mountPath:"+strings.TrimSuffix(dir, "/")) {
					return fmt.Errorf("nothing is mounted at %s", dir)
				}
				inside[i] = name
			}
		}
		if inside[1] == "proxy" {
			inside = append(inside, "--keys", "secret-tripseal-keys", "--upstream", os.Getenv("PAGE_SERVER"))
		} else {
			inside[len(inside)-1] = "secret-tripseal-keys"
		}
		cmd := exec.Command("tripseal", inside[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
	return fmt.Errorf("unknown command %q", words)
}

// podOf returns the template of a deployment's pods. Unless the parameter container is "", the pods
// must have a container with this name.
func podOf(deployment, container string) (any, error) {
	name, ok := strings.CutPrefix(deployment, "deployment/")
	if !ok {
		return nil, fmt.Errorf("%s is no deployment", deployment)
	}
	document, err := manifests("Deployment", name)
	if err != nil {
		return nil, err
	}
	pod := valueAt(document, "spec", "template")
	containers, _ := valueAt(pod, "spec", "containers").([]any)
	if container != "" && !slices.ContainsFunc(containers, func(c any) bool { return valueAt(c, "name") == container }) {
		return nil, fmt.Errorf("%s has no container %s", deployment, container)
	}
	return pod, nil
}

// mustSay returns an error unless a manifest contains one of the texts.
func mustSay(texts ...string) error {
	for _, file := range []string{"proxy-sidecar.yaml", "proxy-deployment.yaml"} {
		manifest, err := os.ReadFile(filepath.Join(os.Getenv("PAGE_ROOT"), "deploy/kubernetes", file))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(string(manifest), text) }) {
			return nil
		}
	}
	return fmt.Errorf("no manifest has %q", texts)
}
