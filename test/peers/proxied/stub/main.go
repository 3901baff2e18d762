// Command stub is an MCP server without an SDK, written as people often write one by hand. It reads
// whatever encoding/json reads, and ignores all headers except Content-Encoding and X-User. It
// accepts batches, compressed bodies, and bodies with several messages one after another. It lists
// the same tools as the server in ../go. The tool multi_round asks for a name and a color. Every
// other tool asks for a confirmation, and so do the prompt and the resource. It keeps the same
// journal as the server in ../go.
//
// The flag -answers sets the form in which the server answers. "json" and "sse" are the usual
// forms. With "sse-cr", lines end with CR alone, and every byte is sent by itself. With "gzip",
// answers are compressed, though no client asked for it.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const prefix = "test_input_required_result_"

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name, URI      string
		Arguments      json.RawMessage
		RequestState   *string
		InputResponses map[string]struct {
			Action  string
			Content map[string]any
		}
		Cursor *string
	}
}

func main() {
	port := flag.Int("port", 0, "`port` to listen on; 0 means a free one")
	answers := flag.String("answers", "sse", "json, sse, sse-cr or gzip")
	flag.Parse()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, *answers)
	})}
	log.Fatal(web.Serve(listener))
}

func serve(w http.ResponseWriter, r *http.Request, as string) {
	var body io.Reader = http.MaxBytesReader(w, r.Body, 16<<20)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	var said [][]byte
	for decoder := json.NewDecoder(body); ; {
		var text json.RawMessage
		if decoder.Decode(&text) != nil {
			break
		}
		messages := []json.RawMessage{text}
		if text[0] == '[' {
			json.Unmarshal(text, &messages)
		}
		for _, text := range messages {
			var m message
			if json.Unmarshal(text, &m) == nil && m.ID != nil {
				answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": m.result(r.Header.Get("X-User"))})
				said = append(said, answer)
			}
		}
	}
	write(w, as, said)
}

func write(w http.ResponseWriter, as string, said [][]byte) {
	if len(said) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	switch as {
	case "sse", "sse-cr":
		w.Header().Set("Content-Type", "text/event-stream")
		end := "\n"
		if as == "sse-cr" {
			end = "\r"
		}
		for _, text := range said {
			event := ": hello" + end + "event: message" + end + "data: " + string(text) + end + end
			if as == "sse" {
				io.WriteString(w, event)
				continue
			}
			for i := range len(event) {
				io.WriteString(w, event[i:i+1])
				w.(http.Flusher).Flush()
			}
		}
	case "gzip":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		packed.Write(said[0])
		packed.Close()
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Write(bytes.Join(said, nil))
	}
}

// These are the names of the tools, without the prefix. The method tools/list returns three tools
// on each page.
var tools = []string{"capabilities", "elicitation", "list_roots", "multi_round", "multiple_inputs", "request_state", "sampling", "tampered_state"}

func (m *message) result(user string) any {
	p := &m.Params
	switch m.Method {
	case "tools/list":
		start := 0
		if p.Cursor != nil {
			journal("got", "cursor", *p.Cursor, m.Method, "", user)
			text, _, _ := strings.Cut(*p.Cursor, "|")
			start, _ = strconv.Atoi(text)
		}
		end := min(max(start, 0)+3, len(tools))
		page := map[string]any{"resultType": "complete"}
		list := []any{}
		for _, name := range tools[min(max(start, 0), end):end] {
			list = append(list, map[string]any{"name": prefix + name, "inputSchema": map[string]any{"type": "object"}})
		}
		page["tools"] = list
		if end < len(tools) {
			next := secret(strconv.Itoa(end))
			journal("issued", "cursor", next, m.Method, "", user)
			page["nextCursor"] = next
		}
		return page
	case "tools/call", "prompts/get", "resources/read":
		return m.call(user)
	}
	return map[string]any{}
}

func (m *message) call(user string) any {
	p := &m.Params
	request, value := p.Name+p.URI+" "+string(p.Arguments), ""
	if p.RequestState != nil {
		journal("got", "state", *p.RequestState, m.Method, request, user)
		value, _, _ = strings.Cut(*p.RequestState, "|")
	}
	written := func(key, field string) any {
		if answer := p.InputResponses[key]; answer.Action == "accept" {
			return answer.Content[field]
		}
		return nil
	}
	ask := func(value, key, text, field, kind string) any {
		next := secret(value)
		journal("issued", "state", next, m.Method, request, user)
		schema := map[string]any{"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field}}
		question := map[string]any{"method": "elicitation/create", "params": map[string]any{"mode": "form", "message": text, "requestedSchema": schema}}
		return map[string]any{"resultType": "input_required", "requestState": next, "inputRequests": map[string]any{key: question}}
	}
	said := func(text string) any {
		return map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": text}}}
	}
	if strings.HasSuffix(p.Name, "multi_round") {
		if color, ok := written("step2", "color").(string); ok {
			return said(value + " likes " + color)
		}
		if name, ok := written("step1", "name").(string); ok {
			return ask(name, "step2", "Step 2: What is your favorite color?", "color", "string")
		}
		return ask("step 1", "step1", "Step 1: What is your name?", "name", "string")
	}
	if ok, answered := written("confirm", "ok").(bool); answered && value != "" {
		return said(fmt.Sprintf("state-ok: %s, %t", value, ok))
	}
	return ask("asked", "confirm", "Please confirm", "ok", "boolean")
}

// secret returns a text that begins with the given value and ends with a random part and the
// canary.
func secret(value string) string { return value + "|" + rand.Text() + "|" + os.Getenv("CANARY") }

var journalMutex sync.Mutex

// journal writes a line about a state or cursor to the file whose path is in JOURNAL. The event is
// "issued" or "got". The parameter request says which call the state is for.
func journal(event, kind, text, method, request, user string) {
	line, _ := json.Marshal(map[string]string{"event": event, "kind": kind, "text": text, "method": method, "request": request, "user": user})
	journalMutex.Lock()
	defer journalMutex.Unlock()
	file, err := os.OpenFile(os.Getenv("JOURNAL"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	file.Write(append(line, '\n'))
}
