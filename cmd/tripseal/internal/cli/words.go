package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Span returns a duration as text in its two largest units: 2h 5m, for example.
func Span(d time.Duration) string {
	d = max(d, -d)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	}
	units := []struct {
		name string
		size time.Duration
	}{{"y", 365 * Day}, {"d", Day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	var parts []string
	for i, unit := range units {
		n := d / unit.size
		if n == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d%s", n, unit.name))
		if i+1 < len(units) {
			next := units[i+1]
			if n := d % unit.size / next.size; n > 0 {
				parts = append(parts, fmt.Sprintf("%d%s", n, next.name))
			}
		}
		break
	}
	return strings.Join(parts, " ")
}

// Day is a duration.
const Day = 24 * time.Hour

// TimeText returns t as text, with its distance from now, such as "in 2h 5m" or "3m ago".
func TimeText(t, now time.Time) string {
	text := Clock(t) + " UTC"
	switch d := t.Sub(now).Round(time.Millisecond); {
	case d > 0:
		return text + ", in " + Span(d)
	case d == 0:
		return text + ", now"
	default:
		return text + ", " + Span(d) + " ago"
	}
}

// Clock returns t in UTC, in words.
func Clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// Quoted puts a text in quotes, and escapes control characters, so that the text is safe to
// print on a terminal. It shortens a long text.
func Quoted(text string) string {
	const most = 200
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:most]) + " and more, which --json has"
}

// QuotedArgument puts a wrong argument in quotes, for an error message. It leaves out a long
// argument, because a long argument may be a secret.
func QuotedArgument(text string) string {
	if len(text) > 24 {
		return "what was given"
	}
	return strconv.Quote(text)
}

// Named makes the name of a file safe to print on a terminal.
func Named(path string) string {
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// Count returns a number with its noun: 1 byte or 3 bytes, for example.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
