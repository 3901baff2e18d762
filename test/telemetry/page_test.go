package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

// exportedMetric is what a replica exports of a metric.
type exportedMetric struct {
	kind, unit, description string
	series                  []map[string]string // the attributes of each series
}

func (e *exportedMetric) add(attrs []attribute.KeyValue) {
	one := make(map[string]string)
	for _, a := range attrs {
		one[string(a.Key)] = a.Value.String()
	}
	e.series = append(e.series, one)
}

// names returns the names of all attributes, sorted.
func (e *exportedMetric) names() []string {
	all := make(map[string]bool)
	for _, attrs := range e.series {
		for name := range attrs {
			all[name] = true
		}
	}
	return sorted(all)
}

func sorted(set map[string]bool) (all []string) {
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// page is what docs/telemetry.md says.
type page struct {
	text    string
	metrics map[string]documented
	values  map[string][]string // the values of each attribute, if the page lists all of them
	events  map[string][]string // the attributes of each event on a span
	types   map[string]string   // the type of each attribute on spans
	lines   int                 // the highest number of lines that a process exports to Prometheus
	shown   string              // the output of the command, as the page shows it
}

// This type is a row of the table of metrics.
type documented struct {
	prometheus, kind, unit string
	attributes             []string
	series                 int
}

var backquotes = regexp.MustCompile("`([^`]+)`")

// quoted returns the texts in backquotes.
func quoted(text string) (all []string) {
	for _, match := range backquotes.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// rows returns the cells of the table with this header, row by row.
func rows(t *testing.T, text, header string) (all [][]string) {
	t.Helper()
	_, table, ok := strings.Cut(text, "\n"+header+"\n")
	if !ok {
		t.Fatalf("the page has no table %s", header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if !strings.HasPrefix(row, "|---") {
			all = append(all, cells)
		}
	}
	return all
}

func readPage(t *testing.T) page {
	t.Helper()
	source, err := os.ReadFile("../../docs/telemetry.md")
	must(t, err)
	p := page{
		text: string(source), metrics: make(map[string]documented), values: make(map[string][]string),
		events: make(map[string][]string), types: make(map[string]string),
	}
	number := func(text string) int {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		must(t, err)
		return n
	}
	sum := 0
	for _, row := range rows(t, p.text, "| metric | in Prometheus | kind | unit | attributes | series |") {
		d := documented{quoted(row[1])[0], strings.TrimSpace(row[2]), quoted(row[3])[0], quoted(row[4]), number(row[5])}
		slices.Sort(d.attributes)
		p.metrics[quoted(row[0])[0]] = d
		switch {
		case d.kind != "histogram":
			sum += d.series
		case d.unit == "s":
			sum += d.series * 15
		default:
			sum += d.series * 12
		}
	}
	for _, row := range rows(t, p.text, "| attribute | values | how many |") {
		if name := quoted(row[0])[0]; !strings.Contains(row[1], "reasons") && strings.TrimSpace(row[2]) != "see below" && name != "tripseal.token.format" {
			p.values[name] = quoted(row[1])
			if n := number(row[2]); n != len(p.values[name]) {
				t.Errorf("the page says that %s has %d values, and lists %q", name, n, p.values[name])
			}
		}
	}
	for _, row := range rows(t, p.text, "| event | when | attributes |") {
		attrs := quoted(row[2])
		slices.Sort(attrs)
		p.events[quoted(row[0])[0]] = attrs
	}
	for _, row := range rows(t, p.text, "| attribute | type | value |") {
		for _, name := range quoted(row[0]) {
			p.types[name] = strings.TrimSpace(row[1])
		}
	}
	match := regexp.MustCompile(`at most (\d+) lines`).FindStringSubmatch(p.text)
	if match == nil {
		t.Fatal("the page does not say how many lines there are")
	}
	if p.lines = number(match[1]); p.lines != sum {
		t.Errorf("the page says %d lines; its table has %d", p.lines, sum)
	}
	_, p.shown, _ = strings.Cut(p.text, "```text\n")
	p.shown, _, _ = strings.Cut(p.shown, "```")
	if len(p.metrics) < 10 || len(p.events) < 5 || len(p.types) < 10 || p.shown == "" {
		t.Fatalf("the page has %d metrics, %d events and %d attributes", len(p.metrics), len(p.events), len(p.types))
	}
	return p
}
