package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// span is a duration in its two largest units.
func span(d time.Duration) string {
	if d < 0 {
		d = -d
	}
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	}
	units := []struct {
		name string
		size time.Duration
	}{{"y", 365 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	var parts []string
	for _, unit := range units {
		if n := d / unit.size; n > 0 || len(parts) > 0 {
			if n > 0 {
				parts = append(parts, fmt.Sprintf("%d%s", n, unit.name))
			} else {
				parts = append(parts, "")
			}
			d -= n * unit.size
		}
		if len(parts) == 2 {
			break
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// when is a moment as seen from now.
func when(t, now time.Time) string {
	text := clock(t)
	switch d := t.Sub(now).Round(time.Millisecond); {
	case d > 0:
		return text + ", in " + span(d)
	case d == 0:
		return text + ", now"
	default:
		return text + ", " + span(d) + " ago"
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// quoted is a text that may hold anything, fit for a terminal and not too long.
func quoted(text string) string {
	const most = 200
	if len(text) <= most {
		return strconv.QuoteToASCII(text)
	}
	return strconv.QuoteToASCII(text[:most]) + " and more"
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
