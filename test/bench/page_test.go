package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figures are the numbers in the text of docs/speed.md, and the cells that the benchmark prints
// for them.
var figures = []struct {
	text   string // what the page says, with # for the number
	title  string // the beginning of the table's title
	row    string
	column string
}{
	{"opens a token of the Python SDK about # times as fast",
		"open a token of the Python SDK", "the Python SDK", "ratio"},
	{"a token of the TypeScript SDK more than # times as fast",
		"open a token of the TypeScript SDK", "the TypeScript SDK", "ratio"},
	{"issuing the cursor of the next page together take about # times as long",
		"a page: open its cursor", "tripseal/cursor", "ratio"},
	{"Opening a token takes no longer with # keys than with # key",
		"open, by the number of keys", "keys in the ring: 1000", "ratio"},
	{"Recording a used token in Redis takes up to # times as long as a `SET NX` through the same client",
		"a use in Redis", "tripseal", "ratio"},
	{"a used token takes about # bytes",
		"memory of one use that is held", "100000 uses, few users", "bytes"},
	{"The middleware takes about # % of the time of these # calls",
		"the adapter for the official SDK, in memory", "of which the middleware", "ratio"},
	{"For a call that never asks, the middleware makes # allocation",
		"the adapter for the official SDK, in memory", "the middleware, a call that never asks", "allocations"},
}

// columnRows has the row that the benchmark prints for each column of the table in docs/speed.md.
var columnRows = map[string]string{
	"tripseal":                 "tripseal",
	"JSON and AES-GCM by hand": "naive: encoding/json and AES-GCM by hand",
	"golang-jwt":               "golang-jwt HS256 (signed, readable)",
	"securecookie":             "gorilla/securecookie",
	"go-jose":                  "go-jose JWE",
	"go-paseto":                "go-paseto v4.local",
}

const (
	digits = `\b[0-9](?:[0-9.,]*[0-9])?`
	words  = `two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twice|half|dozen|hundred|thousand`
)

var (
	anyNumber = `(?:` + digits + `|\b(?:one|` + words + `)\b)`
	// anyFigure matches what is certainly a figure: the word "one" only before a unit.
	anyFigure = regexp.MustCompile(digits + `|\b(?:` + words + `|one (?:allocation|byte|nanosecond|microsecond))\b`)
)

// TestEveryFigureOfTheSpeedPageIsPrinted checks that the benchmark prints a cell for every number
// in docs/speed.md. It compares no values.
func TestEveryFigureOfTheSpeedPageIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/speed.md")
	if err != nil {
		t.Fatal(err)
	}
	var prose, rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		} else {
			prose = append(prose, line)
		}
	}
	text := strings.Join(strings.Fields(strings.Join(prose, " ")), " ")
	for _, f := range figures {
		pattern := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(f.text), "#", anyNumber))
		if len(pattern.FindAllString(text, -1)) != 1 {
			t.Errorf("the page does not say once: %s", f.text)
		}
		text = pattern.ReplaceAllString(text, "")
		if !isPrinted(f.title, f.row, f.column) {
			t.Errorf("no row %s with %s under %s, for: %s", f.row, f.column, f.title, f.text)
		}
	}
	for _, left := range anyFigure.FindAllString(text, -1) {
		t.Errorf("the page has a number that the list of figures lacks: %s", left)
	}
	if len(rows) < 4 {
		t.Fatal("the page has no table")
	}
	header := cellsOf(rows[0])
	for _, line := range rows[2:] { // after the header and its underline
		size, column := strings.NewReplacer("1 KiB", "1024 B").Replace(cellsOf(line)[0]), "ratio"
		if size == "number of allocations" {
			size, column = "256 B", "allocations"
		}
		for _, name := range header[1:] {
			title := "a retry: open, then seal the next round; " + size + " of state"
			if row, ok := columnRows[name]; !ok || !isPrinted(title, row, column) {
				t.Errorf("no row for %s with %s of %s of state", name, column, size)
			}
		}
	}
}

func cellsOf(line string) (cells []string) {
	for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

// isPrinted reports whether a table has this cell, or would have it on a machine that can make it.
func isPrinted(title, row, column string) bool {
	for _, t := range measured() {
		if !strings.HasPrefix(t.title, title) {
			continue
		}
		at := slices.Index(t.columns, column)
		return t.columns == nil || at >= 0 && slices.ContainsFunc(t.rows, func(l line) bool {
			return l.name == row && l.cells[at] != ""
		})
	}
	return false
}
