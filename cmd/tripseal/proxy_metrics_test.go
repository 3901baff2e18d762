package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestMetricsCountWhatHappensAndNameNoTool(t *testing.T) {
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ephemeral", "--single-use",
		"--identity", "header", "--header", "X-User", "--trust", "127.0.0.1/32")
	client := &rawClient{address: p.address, header: http.Header{"X-User": {"alice"}}}
	if err := client.flow(); err != nil {
		t.Fatal(err)
	}
	client.mustDeploy(t, "forged", 1)
	const requests = `http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200"} 4`
	text := ""
	for range 500 { // the client may have its answer before the request is counted
		if _, text = get(t, p.admin+"/metrics"); strings.Contains(text, requests) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, want := range []string{
		`tripseal_operations_total{mcp_method_name="tools/call",tripseal_operation="seal"} 2`,
		`tripseal_operations_total{mcp_method_name="tools/call",tripseal_operation="open"} 2`,
		`error_type="malformed"`,
		`tripseal_store_spend_duration_seconds_count{tripseal_store_result="first"} 2`,
		requests,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
	for _, secret := range []string{"deploy", "alice", "step=", "forged"} {
		if strings.Contains(text, secret) {
			t.Errorf("the metrics have %q", secret)
		}
	}
	series := func() int {
		_, text := get(t, p.admin+"/metrics")
		return strings.Count(text, "\ntripseal_") + strings.Count(text, "\nhttp_server_")
	}
	before := series()
	for i := range 200 {
		other := &rawClient{address: p.address, header: http.Header{"X-User": {fmt.Sprint("visitor-", i)}}}
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"zorp-%d","requestState":"forged-%d"}}`, i, i)
		if i%2 == 0 {
			message = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"zorp/%d","params":{}}`, i)
		}
		if _, err := other.send(message); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(fmt.Sprint("METHOD", i), p.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	// New series may only come from new kinds of results, such as another HTTP status for POST, or
	// the status for other HTTP methods. They must not come from the names that clients made up.
	if after := series(); after > before+60 {
		t.Errorf("%d series became %d", before, after)
	}
	_, text = get(t, p.admin+"/metrics")
	for _, made := range []string{"zorp", `"METHOD`, "visitor-"} {
		if at := strings.Index(text, made); at >= 0 {
			t.Errorf("the metrics have what clients made up: %.200s", text[max(0, at-100):])
		}
	}
}

func TestMetricsNameTheToolsThatAreListed(t *testing.T) {
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--label-tool", "deploy")
	if err := (&rawClient{address: p.address}).flow(); err != nil {
		t.Fatal(err)
	}
	if _, text := get(t, p.admin+"/metrics"); !strings.Contains(text, `gen_ai_tool_name="deploy"`) {
		t.Error(text)
	}
}
