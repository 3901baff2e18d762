package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// hop compares the command tripseal proxy with a plain reverse proxy, as a client sees them. Both
// are in front of the same server. The two figures have the same unit: nanoseconds, or jobs per
// second.
type hop struct {
	name           string
	plain, sealing float64
	ratio          float64
	most, least    float64 // the highest ratio of times that is allowed, or the lowest ratio of rates; the other is 0
}

func (h hop) met() bool { return h.ratio >= h.least && (h.most == 0 || h.ratio <= h.most) }

// proxyWorkers is how many clients send calls at the same time when rates are measured.
const proxyWorkers = 8

// proxiedJob is what a client does through a proxy, with the limits for its ratios.
type proxiedJob struct {
	name         string
	json, events float64 // the highest allowed ratio of the two times: with answers in JSON, and with answers as events
	rate         float64 // the lowest allowed ratio of the two rates
	run          func(c *proxyClient) error
}

func proxiedJobs() []proxiedJob {
	return []proxiedJob{
		{"a call without state", 1.10, 1.15, 0.90, func(c *proxyClient) error { return c.call("silent", "") }},
		{"two rounds: a question and its answer", 1.20, 1.30, 0.90, (*proxyClient).flow},
		{"a call with an answer of 64 KiB", 1.25, 1.35, 0.75, func(c *proxyClient) error { return c.call("large", "") }},
	}
}

func proxyComparisons() []comparison {
	_, missing := exec.LookPath("go")
	const about = "tripseal proxy against httputil.ReverseProxy, "
	return []comparison{
		{title: about + "median times", missing: missing, measure: hopTimes},
		{title: fmt.Sprintf("%srates with %d clients, JSON", about, proxyWorkers), missing: missing, measure: hopRates},
	}
}

// hopTimes measures the median time of each job: through the plain proxy, and through the sealing
// proxy. In each turn, the job runs once through each of them.
func hopTimes(budget time.Duration) table {
	var all []hop
	jobs, proxies := proxiedJobs(), startProxies()
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for _, job := range jobs {
			clients := proxies.clients(accept)
			var nanos [2][]float64
			warmUp(clients, job)
			deadline := time.Now().Add(budget / time.Duration(2*len(jobs)))
			for turn := 0; turn == 0 || time.Now().Before(deadline); turn++ {
				for i := range clients {
					i = (i + turn) % 2 // so that the two proxies take turns in being first
					start := time.Now()
					check(job.run(clients[i]))
					nanos[i] = append(nanos[i], float64(time.Since(start)))
				}
			}
			h := hop{name: job.name + ", JSON", plain: median(nanos[0]), sealing: median(nanos[1]), most: job.json}
			if accept != "application/json" {
				h.name, h.most = job.name+", events", job.events
			}
			h.ratio = h.sealing / h.plain
			all = append(all, h)
		}
	}
	return hopTable(all)
}

// hopRates measures how often per second the clients can do each job through each proxy. The
// proxies take turns, and each turn gives one ratio of their rates.
func hopRates(budget time.Duration) table {
	var all []hop
	jobs, proxies := proxiedJobs(), startProxies()
	for _, job := range jobs {
		var workers [proxyWorkers][2]*proxyClient
		for w := range workers {
			workers[w] = proxies.clients("application/json")
			warmUp(workers[w], job)
		}
		var rates [2][]float64
		var ratios []float64
		spend := budget / time.Duration(len(jobs))
		each := min(200*time.Millisecond, spend/20)
		deadline := time.Now().Add(spend)
		for turn := 0; turn == 0 || time.Now().Before(deadline); turn++ {
			var rate [2]float64
			for i := range rate {
				i = (i + turn) % 2
				rate[i] = rateOf(func(worker int) error { return job.run(workers[worker][i]) }, each)
				rates[i] = append(rates[i], rate[i])
			}
			ratios = append(ratios, rate[1]/rate[0])
		}
		all = append(all, hop{name: job.name, plain: median(rates[0]), sealing: median(rates[1]), ratio: median(ratios), least: job.rate})
	}
	return hopTable(all)
}

// rateOf returns how many jobs the workers do in a second.
func rateOf(job func(worker int) error, during time.Duration) float64 {
	var done [proxyWorkers]int
	var failed [proxyWorkers]error
	var wait sync.WaitGroup
	start := time.Now()
	for w := range proxyWorkers {
		wait.Go(func() {
			for failed[w] == nil && (done[w] == 0 || time.Since(start) < during) {
				failed[w] = job(w)
				done[w]++
			}
		})
	}
	wait.Wait()
	check(errors.Join(failed[:]...))
	sum := 0
	for _, n := range done {
		sum += n
	}
	return float64(sum) / time.Since(start).Seconds()
}

func warmUp(clients [2]*proxyClient, job proxiedJob) {
	for range 5 {
		for _, c := range clients {
			check(job.run(c))
		}
	}
}

func hopTable(all []hop) table {
	unit, bound := "ns", "at most"
	if all[0].least > 0 {
		unit, bound = "per s", "at least"
	}
	t := table{columns: []string{unit + ", plain", unit + ", seal", "ratio", bound}}
	var missed []string
	for _, h := range all {
		t.add(h.name, fmt.Sprintf("%.0f", h.plain), fmt.Sprintf("%.0f", h.sealing),
			fmt.Sprintf("%.2f", h.ratio), fmt.Sprintf("%.2f", max(h.most, h.least)))
		if !h.met() {
			missed = append(missed, h.name)
		}
	}
	t.targets = []verdict{{"each ratio is " + bound + " what its row says", missed}}
	return t
}

// proxyPair has the addresses of the plain and of the sealing proxy.
type proxyPair [2]string

// startProxies builds the command, and starts a server and the two proxies in front of it, each
// in a process of its own. cleanUp ends them.
var startProxies = sync.OnceValue(func() (pair proxyPair) {
	dir, err := os.MkdirTemp("", "tripseal-bench-")
	check(err)
	atEnd = append(atEnd, func() { os.RemoveAll(dir) })
	command := filepath.Join(dir, "tripseal.exe") // Windows starts only files whose names end with .exe
	build := exec.Command("go", "build", "-C", filepath.Join("..", "..", "cmd", "tripseal"), "-o", command, ".")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("go build: %v\n%s", err, out))
	}
	self, err := os.Executable()
	check(err)
	upstream := startServing(exec.Command(self), proxyRole+"=server")
	return proxyPair{
		startServing(exec.Command(self), proxyRole+"=proxy", proxyUpstream+"="+upstream),
		startServing(exec.Command(command, "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0",
			"--ephemeral", "--audience", audience, "--identity", "anonymous")),
	}
})

// startServing starts a process, and returns the address that the process prints after "serving".
func startServing(cmd *exec.Cmd, environment ...string) (address string) {
	cmd.Env = append(os.Environ(), environment...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	atEnd = append(atEnd, func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		cmd.Process.Kill()
		cmd.Wait()
		panic(fmt.Sprintf("%s does not serve: %q, %v\n%s", cmd.Path, line, err, &log))
	}
	return address
}

// Two environment variables tell a process of the benchmark to serve.
const (
	proxyRole     = "TRIPSEAL_BENCH_ROLE"     // "server", or "proxy" for the plain proxy in front of the server
	proxyUpstream = "TRIPSEAL_BENCH_UPSTREAM" // for the proxy: the address of the server
)

// playRole serves HTTP and never returns, if the process was started as the server or as
// the plain proxy. Otherwise it does nothing.
func playRole() {
	var handler http.Handler
	switch os.Getenv(proxyRole) {
	case "":
		return
	case "server":
		handler = http.HandlerFunc(stubServer)
	case "proxy":
		upstream, err := url.Parse(os.Getenv(proxyUpstream))
		check(err)
		forward := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = upstream.Scheme, upstream.Host, ""
			},
			Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true},
		}
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Without full duplex, the first bytes of an answer close the body of the
			// request. If the transport is still reading the end of that body, it then
			// cuts off the answer.
			http.NewResponseController(w).EnableFullDuplex()
			forward.ServeHTTP(w, r)
		})
	}
	ballast = nil // the server and the plain proxy run without it; tripseal proxy makes a ballast of its own
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	check(http.Serve(listener, handler))
}

// The state and the answers of the server. The large answer has line ends and quotation
// marks, as the text of a tool often has.
const (
	stubState    = "step=1;service=web;version=2.4.1"
	stubDone     = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`
	stubQuestion = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"` + stubState + `","inputRequests":{"` + question +
		`":{"method":"elicitation/create","params":{"mode":"form","message":"Really deploy?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}}}}}`
)

var stubLarge = sync.OnceValue(func() string {
	const line = `2026-07-28T10:00:00Z INFO deploy: pod \"web-5d9c\" in zone eu-1 is ready\n`
	return strings.Replace(stubDone, "done", strings.Repeat(line, 64<<10/len(line)), 1)
})

// stubServer is an MCP server that does as little as possible.
func stubServer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	answer := stubDone
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case bytes.Contains(body, []byte(`"large"`)):
		answer = stubLarge()
	case bytes.Contains(body, []byte(`"`+target+`"`)) && !bytes.Contains(body, []byte(`"requestState":"`+stubState+`"`)):
		answer = stubQuestion
	}
	if r.Header.Get("Accept") != "text/event-stream" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		io.WriteString(w, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "event: message\ndata: ")
	io.WriteString(w, answer)
	io.WriteString(w, "\n\n")
	http.NewResponseController(w).Flush()
}

// proxyClient sends calls over one connection.
type proxyClient struct {
	address, accept string
	http            http.Client
	answer          bytes.Buffer // the last answer
}

// clients returns a client of each proxy.
func (p proxyPair) clients(accept string) (both [2]*proxyClient) {
	for i, address := range p {
		connection := &http.Transport{DisableCompression: true}
		both[i] = &proxyClient{address: address, accept: accept, http: http.Client{Transport: connection}}
		atEnd = append(atEnd, connection.CloseIdleConnections)
	}
	return both
}

// call calls a tool. It adds the JSON text extraParams at the end of the params. This text is "",
// or begins with a comma, such as `,"requestState":"..."`.
func (c *proxyClient) call(tool, extraParams string) error {
	const meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"arguments":%s,"_meta":%s%s}}`, method, tool, deployArguments, meta, extraParams)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.address, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", c.accept)
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	r.Header.Set("Mcp-Name", tool)
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	c.answer.Reset()
	_, err = c.answer.ReadFrom(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || !bytes.Contains(c.answer.Bytes(), []byte(`"result":{`))) {
		err = fmt.Errorf("%s: %.200s", res.Status, &c.answer)
	}
	return err
}

// flow calls a tool that asks a question, and calls it again with the answer.
func (c *proxyClient) flow() error {
	if err := c.call(target, ""); err != nil {
		return err
	}
	_, after, _ := strings.Cut(c.answer.String(), `"requestState":"`)
	state, _, asked := strings.Cut(after, `"`)
	if !asked {
		return errors.New("no question comes")
	}
	if err := c.call(target, fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{"ok":true}}},"requestState":"%s"`, question, state)); err != nil {
		return err
	}
	if strings.Contains(c.answer.String(), "requestState") {
		return errors.New("the question comes again")
	}
	return nil
}
