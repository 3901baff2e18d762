package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDemo(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"demo"}, []string{
			"the handler wrote  step=1&traffic=10", "the client saw     ms1.", "alice gets         deployed frontend 1.4.2 in eu",
			"forged", "malformed", "principal", "request", "arguments", "the question again", "expired", "audience", "All 8 attacks failed.",
		}},
		{[]string{"demo", "--unprotected"}, []string{"the client saw     step=1&traffic=10", "restored frontend", "database 9.9.9", "All 8 attacks succeeded."}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(c.args, strings.NewReader(""), &out, &errs); code != 0 || errs.Len() > 0 {
				t.Fatalf("exit %d: %s\n%s", code, &errs, &out)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 80 {
					t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(line), line)
				}
			}
			if len(lines) > 24 {
				t.Errorf("%d lines do not fit one screen", len(lines))
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Error("colour, although this is not a terminal")
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "which command?"},
		{[]string{"--help"}, 0, "demo"},
		{[]string{"dmeo"}, 2, `there is no command "dmeo"; was demo meant?`},
		{[]string{"demo", "--help"}, 0, "--unprotected"},
		{[]string{"demo", "--unpretected"}, 2, "unpretected"},
		{[]string{"demo", "now"}, 2, `"now" is one argument too many`},
	} {
		var out bytes.Buffer
		if code := run(c.args, strings.NewReader(""), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: exit %d, %s", c.args, code, &out)
		}
	}
}
