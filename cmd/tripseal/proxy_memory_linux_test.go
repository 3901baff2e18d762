package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// memoryLimit is the limit of the container in deploy/kubernetes/proxy-deployment.yaml, in KiB.
const memoryLimit = 256 << 10

// peak returns the most memory that the process ever had, in KiB.
func (p *proxyProcess) peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// filled returns a text of n bytes: head, then parts with numbers in place of %d, then tail.
func filled(n int, head, part, tail string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len()+len(part)+8+len(tail) < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, part, i)
	}
	b.WriteString(strings.Repeat(" ", n-b.Len()-len(tail)))
	return b.String() + tail
}

// TestHostileClientsTakeNoMoreMemoryThanTheContainerHas runs a proxy with the limits of the Kubernetes manifests.
func TestHostileClientsTakeNoMoreMemoryThanTheContainerHas(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	if testing.Short() {
		t.Skip("it sends more than a GiB")
	}
	const long = 4 << 20
	deep := strings.Repeat(`{"a":[`, 50) + strings.Repeat(`]}`, 50)
	answers := map[string]string{
		"asks": `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s","inputRequests":{` +
			`"a":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}}}`,
		"long": filled(long, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"list":[`, `{"n%d":[]}`, `]}}`),
		"done": `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer := answers[r.Header.Get("X-Answer")]
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		io.WriteString(w, answer)
	}))
	defer upstream.Close()
	t.Setenv("GOMEMLIMIT", "200MiB")
	p := startProcess(t, "--upstream", upstream.URL+"/mcp", "--ephemeral", "--identity", "anonymous", "--budget", "64MiB")
	address := strings.TrimSuffix(strings.TrimPrefix(p.address, "http://"), "/mcp")

	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + params
	}
	const responses = `"requestState":"x","inputResponses":{"a":{"content":{`
	const capabilities = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},`
	request := func(answer string, announced int, body string) string {
		return "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
			fmt.Sprintf("X-Answer: %s\r\nContent-Length: %d\r\n\r\n", answer, announced) + body
	}
	whole := func(answer, message string) string { return request(answer, len(message), message) }
	type phase struct {
		name, request string
		clients       int
		reads         bool // whether the clients read their answers, and end
	}
	phases := []phase{
		{"answers with many members", whole("done", filled(long, call(responses), `"%d":{}`, `}}}}}`)), 100, true},
		{"deep answers", whole("done", filled(long, call(responses), `"%d":`+deep, `}}}}}`)), 100, true},
		{"many capabilities", whole("asks", filled(long, call(capabilities), `"%d":{}`, `}}}}`)), 100, true},
		{"deep capabilities", whole("asks", filled(long, call(capabilities), `"%d":`+deep, `}}}}`)), 100, true},
		{"slow senders", request("done", long, strings.Repeat(" ", long/2)), 200, false},
		{"slow readers", whole("long", call(`"arguments":{}}}`)), 200, false},
	}
	for _, ph := range phases {
		began := time.Now()
		var clients sync.WaitGroup
		var open []net.Conn
		var read atomic.Int64 // how many hostile messages were read, and not refused for want of memory
		for range ph.clients {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			conn.SetDeadline(time.Now().Add(time.Minute))
			open = append(open, conn)
			clients.Go(func() {
				io.WriteString(conn, ph.request) // an error means that the proxy has closed the connection
				if ph.reads {
					head := make([]byte, len("HTTP/1.1 200"))
					if io.ReadFull(conn, head); string(head) == "HTTP/1.1 200" {
						read.Add(1)
					}
					conn.Close()
				}
			})
		}
		ended := make(chan bool)
		go func() {
			clients.Wait()
			close(ended)
		}()
		served, refused := 0, 0
		for attacked := true; served < 20 || attacked; {
			if honest(p.address) {
				served++
			} else if refused++; refused == 600 {
				t.Fatalf("%s: an honest client was served %d times and refused %d times", ph.name, served, refused)
			}
			select {
			case <-ended:
				attacked = false
			default:
			}
			time.Sleep(20 * time.Millisecond)
		}
		for _, conn := range open {
			conn.Close()
		}
		if ph.reads && read.Load() == 0 {
			t.Errorf("%s: none was read", ph.name)
		}
		t.Logf("%s: %d MiB at most, %d honest calls served and %d refused in %v",
			ph.name, p.peak(t)>>10, served, refused, time.Since(began))
	}
	if peak := p.peak(t); peak > memoryLimit {
		t.Errorf("the proxy had %d MiB, more than the %d MiB of its container", peak>>10, memoryLimit>>10)
	}
	p.terminate(t)
}

// honest makes an ordinary call, and reports whether it is served. A client may have to try again.
func honest(address string) bool {
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call",`+
		`"params":{"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Answer", "asks")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return err == nil && res.StatusCode == http.StatusOK && strings.Contains(string(body), `"requestState":"ms1.`)
}
