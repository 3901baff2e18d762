package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestDeclinedCallsHaveNoEffect(t *testing.T) {
	// The tool takes every answer whose action is "accept" as consent, whatever its key is.
	var effects atomic.Int64
	kept := &keeper{rounds: 1}
	report := runAgainst(t, toolServer(func(c toolCall) string {
		if c.RequestState != nil && kept.issued(c, 1) {
			for _, answer := range c.InputResponses {
				if answer.Action == "accept" {
					effects.Add(1)
					return resultOf("deployed")
				}
			}
			return resultOf("declined")
		}
		return kept.call(c)
	}), Options{Targets: deploy, Decline: true, Timeout: 5 * time.Second})
	if n := effects.Load(); n > 0 {
		t.Errorf("the tool ran %d times", n)
	}
	if len(report.Targets) != 1 || verdicts(report)["null-answer"] == NotTried {
		t.Errorf("it was not attacked: %v, %s", report.Notes, report.Verdict)
	}
}

func TestAQuestionThatCannotBeDeclinedIsNotAnswered(t *testing.T) {
	for _, method := range []string{"sampling/createMessage", "roots/list"} {
		var effects atomic.Int64
		report := runAgainst(t, toolServer(func(c toolCall) string {
			if c.RequestState == nil {
				return asksWith("s", map[string]string{"ask": `{"method":"` + method + `","params":{}}`})
			}
			effects.Add(1)
			return resultOf("done")
		}), Options{Targets: deploy, Decline: true})
		if n := effects.Load(); n > 0 || len(report.Targets) > 0 {
			t.Errorf("%s: the tool ran %d times, targets %v", method, n, report.Targets)
		}
		if text := fmt.Sprint(report.Notes); !strings.Contains(text, "cannot be declined") {
			t.Errorf("%s: %s", method, text)
		}
	}
}

func TestNoRequestAcceptsAnythingWhenCallsAreDeclined(t *testing.T) {
	inner := toolServer((&keeper{rounds: 2, asks: 2}).call)
	runAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		r.Body = teed(r.Body, &body)
		inner.ServeHTTP(w, r)
		if text := body.String(); strings.Contains(text, `accept"`) && json.Valid([]byte(text)) {
			t.Errorf("%s", clip(text, 400))
		}
	}), Options{Targets: deploy, Decline: true, Bearer: "alice-token", OtherBearer: "bob-token", Timeout: 5 * time.Second})
}

// teed returns a body that copies everything that is read from it. The copy goes to w.
func teed(body io.ReadCloser, w io.Writer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, w), body}
}
