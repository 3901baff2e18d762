package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{"env":"a"},` +
	`"requestState":"debug","inputResponses":{"confirm":{"action":"accept","content":{"ok":true}}},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`

func TestItServesHTTPWithTheHolesOfItsFlags(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-http", "127.0.0.1:0", "-hole", "debug-state", "-hole", "echo", "-sse"}, nil, write)
		write.Close()
		done <- err
	}()
	line, _ := bufio.NewReader(read).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !found || !strings.HasSuffix(url, "/mcp") {
		t.Fatalf("it printed %q: %v", line, <-done)
	}
	r, _ := http.NewRequest("POST", url, strings.NewReader(body))
	for name, value := range map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "deploy"} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if !strings.Contains(string(text), "deployed a") || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("it answered %s", text)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestItServesStdioWithoutAnAddress(t *testing.T) {
	for hole, want := range map[string]string{"debug-state": "deployed a", "echo": "Invalid or expired"} {
		var out strings.Builder
		if err := run(t.Context(), []string{"-hole", hole}, strings.NewReader(body), &out); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: it answered %s", hole, out.String())
		}
	}
}

func TestItListsTheHoles(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-list"}, nil, &out); err != nil || strings.Count(out.String(), "\n") < 40 {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestOtherMachinesCannotReachIt(t *testing.T) {
	if err := run(t.Context(), []string{"-http", "0.0.0.0:0"}, nil, io.Discard); err == nil {
		t.Error("it served every network")
	}
}

func TestMistakesAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-hole", "x"}, {"plaintext"}} {
		if err := run(t.Context(), args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
