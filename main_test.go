package tripseal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
)

// The tests put the word hush into states, arguments and principals, and register keys and tokens
// with a leakScanner. The scanner reads what is logged, observed or returned as an error during the
// whole run. It must find neither the word nor a registered secret.
const hush = "hush"

var leaks = &leakScanner{}

type leakScanner struct {
	mu      sync.Mutex
	secrets [][]byte
	scanned int
	found   []string
}

func (l *leakScanner) register(secrets ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range secrets {
		if len(s) >= 16 && len(l.secrets) < 2000 {
			l.secrets = append(l.secrets, []byte(s))
		}
	}
}

// Write is called once for each log record.
func (l *leakScanner) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scanned++
	if bytes.Contains(p, []byte(hush)) {
		l.found = append(l.found, string(p))
	}
	for _, s := range l.secrets {
		if bytes.Contains(p, s) {
			l.found = append(l.found, string(p))
		}
	}
	if n := bytes.Count(p, []byte("\n")); n != 1 || !bytes.HasSuffix(p, []byte("\n")) {
		l.found = append(l.found, fmt.Sprintf("a record of %d lines: %q", n, p))
	}
	return len(p), nil
}

func (l *leakScanner) scan(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	l.Write([]byte(text + "\n"))
}

func TestMain(m *testing.M) {
	code := m.Run()
	leaks.mu.Lock()
	defer leaks.mu.Unlock()
	if whole := flag.Lookup("test.run").Value.String() == ""; whole && leaks.scanned == 0 {
		fmt.Println("the scan for leaked secrets saw no text: it cannot have worked")
		code = 1
	}
	for i, found := range leaks.found {
		if i < 10 {
			fmt.Printf("leaked, or broke a log line: %.500s\n", found)
		}
		code = 1
	}
	os.Exit(code)
}

// logbook collects the log records and events of one boundary.
type logbook struct {
	mu      sync.Mutex
	records []map[string]any
	events  []tripseal.Event
}

func (l *logbook) Write(p []byte) (int, error) {
	var record map[string]any
	if err := json.Unmarshal(p, &record); err != nil {
		leaks.scan("a log record that is not JSON: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, record)
	return leaks.Write(p)
}

func (l *logbook) observe(_ context.Context, e tripseal.Event) {
	leaks.scan("%v %+v %#v", e, e, e)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *logbook) last(t *testing.T) map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.records) == 0 {
		t.Fatal("nothing was logged")
	}
	return l.records[len(l.records)-1]
}

func (l *logbook) lastEvent(t *testing.T) tripseal.Event {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) == 0 {
		t.Fatal("nothing was observed")
	}
	return l.events[len(l.events)-1]
}

// newKey returns a new key, and registers its secret with the leakScanner.
func newKey(t *testing.T) tripseal.Key {
	t.Helper()
	key := tripseal.GenerateKey()
	leaks.register(key.Reveal(), key.Reveal()[20:])
	return key
}

func newRing(t *testing.T, keys ...tripseal.Key) *tripseal.Ring {
	t.Helper()
	ring, err := tripseal.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// service is a boundary under test with its logbook.
type service struct {
	*tripseal.Boundary
	book *logbook
}

// askAgain is the lowest Config.AskAgain of a service that newService makes. Tests set askAgain to
// try all causes of a rejection with this value.
var askAgain tripseal.AskAgain

// newService makes a boundary. If the config lacks keys or an audience, newService adds them.
func newService(t *testing.T, config tripseal.Config) service {
	t.Helper()
	if config.Keys == nil && config.Format == nil {
		config.Keys = newRing(t, newKey(t))
	}
	if config.Audience == "" {
		config.Audience = "deploy.example.com"
	}
	config.AskAgain = max(config.AskAgain, askAgain)
	book := &logbook{}
	config.Logger = slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if config.Observer == nil {
		config.Observer = book.observe
	}
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return service{boundary, book}
}

// deploy is the request that most tests are about.
func deploy() tripseal.Request {
	return tripseal.Request{
		Method:    "tools/call",
		Target:    "deploy",
		Arguments: []byte(`{"region":"hush-eu","replicas":3}`),
		Principal: tripseal.User("hush-alice"),
	}
}

const step = "hush-step=1"

var confirm = tripseal.Question{Key: "confirm", Kind: tripseal.KindForm}

// s.first opens a request without a token, seals the state, and returns the new token.
func (s service) first(t *testing.T, request tripseal.Request, state string, questions ...tripseal.Question) string {
	t.Helper()
	ctx := context.Background()
	round, err := s.Open(ctx, request, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.Seal(ctx, &round, &state, questions...)
	if err != nil {
		t.Fatal(err)
	}
	leaks.register(token, token[len(token)/2:])
	return token
}

// accept opens a token that must open.
func (s service) accept(t *testing.T, request tripseal.Request, token string) tripseal.Round {
	t.Helper()
	round, err := s.Open(context.Background(), request, token)
	if err != nil {
		t.Fatalf("rejected: %v", s.book.lastEvent(t).Reason)
	}
	return round
}

// reject opens a token, and checks that it is rejected with the wanted reason.
func (s service) reject(t *testing.T, request tripseal.Request, token string, want tripseal.Reason) {
	t.Helper()
	round, err := s.Open(context.Background(), request, token)
	s.checkRejection(t, round, err, want)
}

func (s service) checkRejection(t *testing.T, round tripseal.Round, err error, want tripseal.Reason) {
	t.Helper()
	leaks.scan("%v %+v %#v %q", err, err, err, err)
	if err == nil {
		t.Fatalf("accepted, want a rejection as %s", want)
	}
	if state, ok := round.State(); ok || state != "" {
		t.Fatal("a state came back beside an error")
	}
	var rejected *tripseal.RejectError
	if !errors.As(err, &rejected) || !errors.Is(err, tripseal.ErrRejected) {
		t.Fatalf("not a rejection: %v", err)
	}
	if rejected.Reason != want {
		t.Fatalf("rejected as %s, want %s", rejected.Reason, want)
	}
	checkWire(t, err)
	if logged := s.book.last(t); logged["reason"] != string(want) || logged["msg"] != "tripseal: token rejected" {
		t.Fatalf("the log says %v, want reason %s", logged, want)
	}
	if seen := s.book.lastEvent(t); seen.Reason != want || seen.Op != tripseal.OpOpen {
		t.Fatalf("the observer saw %s of %s, want %s", seen.Reason, seen.Op, want)
	}
}

const wireRejection = `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}`

// checkWire checks that the client sees the error for rejected tokens, byte for byte.
func checkWire(t *testing.T, err error) {
	t.Helper()
	wire, jsonErr := json.Marshal(tripseal.Wire(err))
	if jsonErr != nil || string(wire) != wireRejection {
		t.Fatalf("the client sees %s, %v", wire, jsonErr)
	}
	if err.Error() != "tripseal: token rejected" {
		t.Fatalf("the error's text differs: %v", err)
	}
}

// notSealed checks that Seal failed for this reason.
func (s service) notSealed(t *testing.T, token string, err error, want tripseal.Reason) {
	t.Helper()
	leaks.scan("%v %+v %#v", err, err, err)
	var failed *tripseal.SealError
	if !errors.As(err, &failed) || failed.Reason != want || token != "" {
		t.Fatalf("Seal = %q, %v, want reason %s", token, err, want)
	}
	if wire, _ := json.Marshal(tripseal.Wire(err)); string(wire) != `{"code":-32603,"message":"Internal error"}` {
		t.Fatalf("the client sees %s", wire)
	}
	logged := s.book.last(t)
	if logged["reason"] != string(want) || logged["msg"] != "tripseal: state not sealed" {
		t.Fatalf("the log says %v, want reason %s", logged, want)
	}
	switch want {
	case tripseal.ReasonMisuse, tripseal.ReasonTooLarge, tripseal.ReasonBadQuestions, tripseal.ReasonCodecFailed, tripseal.ReasonPrincipalFailed:
		if logged["cause"] == nil || failed.Cause() == nil {
			t.Fatalf("the log does not say what to do: %v", logged)
		}
	}
}

func jsonLogger(w *logbook) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }
