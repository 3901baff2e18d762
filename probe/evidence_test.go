package probe

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hostile has texts that a server can send to harm the reader of a report.
var hostile = []string{
	"</pre><script>alert(1)</script>", "]]>", "\x00", "\x1b[2J\x1b[31m", "\u009b2J", "\u202egnp.exe", "\u2066", "\u2028", "\xff\xfe",
	"'\"`$(touch x)\\", "{{.}}", "<!--", "&lt;", "\r\x08\x7f", "\ufffe", "\U000e0041", "\ufeff",
}

func probeOf(address string) *probe {
	return &probe{Options: Options{Bearer: "secret-token-of-a-user"}, server: &web{address: address}}
}

func TestFindingShowsNoPartOfAToken(t *testing.T) {
	p := probeOf("http://127.0.0.1/mcp")
	for before := maxAnswerShown - len(p.Bearer) - 1; before <= maxAnswerShown; before++ {
		f := p.finding("tool x", "the refusal says "+p.Bearer, []exchange{
			{reply: &reply{status: 200, raw: []byte(strings.Repeat("a", before) + p.Bearer)}},
			{reply: &reply{lost: errors.New(p.Bearer)}},
		})
		for _, text := range []string{f.What, f.Exchanges[0].Answer, f.Exchanges[1].Answer} {
			if strings.Contains(text, p.Bearer[:3]) {
				t.Fatalf("with %d bytes before the token: %q", before, text[max(0, len(text)-40):])
			}
		}
	}
}

func TestFindingSaysHowMuchOfAnAnswerWasLeftOut(t *testing.T) {
	for _, raw := range []string{strings.Repeat("é", maxAnswerShown), strings.Repeat("a", maxAnswerShown) + "b", strings.Repeat("\x80", 2*maxAnswerShown)} {
		e := probeOf("http://127.0.0.1/mcp").finding("", "", []exchange{{reply: &reply{status: 400, raw: []byte(raw)}}}).Exchanges[0]
		if e.Status != 400 || e.Cut < len(raw)-maxAnswerShown || e.Cut > len(raw)-maxAnswerShown+utf8.UTFMax || !utf8.ValidString(e.Answer) {
			t.Errorf("status %d, cut %d of %d", e.Status, e.Cut, len(raw))
		}
	}
}

func TestRequestHasNothingThatATerminalActsOn(t *testing.T) {
	for _, text := range hostile {
		curl := probeOf("http://127.0.0.1/mcp").curl(exchange{message: message{method: "tools/call"}.with("name", quoted("deploy"+text)), reply: &reply{}})
		for _, char := range curl {
			if char != '\n' && (!unicode.IsGraphic(char) || char == utf8.RuneError && !strings.Contains(text, "\ufffd") && utf8.ValidString(text)) {
				t.Errorf("%q is in %q", char, curl)
			}
		}
	}
}

func TestLongRequestIsAComment(t *testing.T) {
	body := "{\ntouch x #" + strings.Repeat("a", maxShown)
	curl := probeOf("http://127.0.0.1/mcp").curl(exchange{message: message{body: func(int) string { return body }}, reply: &reply{}})
	if !strings.HasPrefix(curl, "# ") || strings.Contains(curl, "\n") {
		t.Errorf("%q", curl)
	}
}

func TestShellReadsBackWhatWasQuoted(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash on this machine")
	}
	for _, text := range hostile {
		if strings.Contains(text, "\x00") {
			continue // no argument of a command can have a zero byte
		}
		out, err := exec.Command(bash, "-c", "printf %s "+shellQuote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q became %q, %v", text, out, err)
		}
	}
}
