package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figure is a number in docs/speed.md, and the cell that the benchmark prints
// for it.
type figure struct {
	text   string // what the page says, with # for the number
	title  string // the beginning of the table's title
	row    string
	column string
}

const (
	adapterTitle = "the adapter for the official SDK, in memory"
	mcpgoSilence = "the adapter for mcp-go, a tool call that never asks"
	mcpgoAsking  = "the adapter for mcp-go, a round of a tool"
)

var figures = []figure{
	{"opens a token of the Python SDK about # times as fast", "open a token of the Python SDK", "the Python SDK", "ratio"},
	{"a token of the TypeScript SDK more than # times as fast", "open a token of the TypeScript SDK", "the TypeScript SDK", "ratio"},
	{"issuing the cursor of the next page together take about # times as long", "a page: open its cursor", "tripseal/cursor", "ratio"},
	{"Opening a token takes no longer with # keys than with # key", "open, by the number of keys", "1000 keys", "ratio"},
	{"Recording a used token in Redis takes as long as a `SET NX` through the same client", "a use in Redis", "tripseal", "ratio"},
	{"a used token takes # to # bytes while the store fills", "memory of one use that is held", "100000 uses, few users", "bytes"},
	{"The middleware takes about # % of the time of these # calls", adapterTitle, "of which the middleware", "ratio"},
	{"For a call that never asks, the middleware makes # allocation", adapterTitle, "the middleware, a call that never asks", "allocations"},
	{"a call that never asks makes # allocations more with `mcpgo` than with empty middleware", mcpgoSilence, "protected", "allocations"},
	{"A call that asks a question makes # allocations more, its retry included", mcpgoAsking, "protected", "allocations"},
}

// tableFigures maps each column of the table in docs/speed.md to a row that the benchmark prints.
// The column shows the figures of this printed row. In the page's table, each row is for one size
// of state, but the last row shows the number of allocations.
var tableFigures = map[string]string{
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
	// number matches a number where a figure is expected.
	number = `(?:` + digits + `|\b(?:one|` + words + `)\b)`
)

// anyFigure matches a number in the text of the page. The word "one" counts only before a unit.
var anyFigure = regexp.MustCompile(digits + `|\b(?:` + words + `|one (?:allocation|byte|nanosecond|microsecond))\b`)

// TestEveryFigureOfTheSpeedPageIsPrinted checks that the benchmark prints a cell for every number
// in docs/speed.md. It compares no values.
func TestEveryFigureOfTheSpeedPageIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/speed.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range unprinted(string(page), measured()) {
		t.Error(problem)
	}
}

// unprinted compares the page with the printed tables, and with the two lists of this file: figures
// and tableFigures. It returns the problems that it finds.
func unprinted(section string, printed []printedTable) (problems []string) {
	var prose, rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		} else {
			prose = append(prose, line)
		}
	}
	text := strings.Join(strings.Fields(strings.Join(prose, " ")), " ")
	for _, f := range figures {
		pattern := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(f.text), "#", number))
		if len(pattern.FindAllString(text, -1)) != 1 {
			problems = append(problems, "the page does not say once: "+f.text)
		}
		text = pattern.ReplaceAllString(text, "")
		if !hasCell(printed, f.title, f.row, f.column) {
			problems = append(problems, "no row "+f.row+" with "+f.column+" under "+f.title+", for: "+f.text)
		}
	}
	for _, left := range anyFigure.FindAllString(text, -1) {
		problems = append(problems, "the page has a number that the list of figures lacks: "+left)
	}
	if len(rows) < 3 {
		return append(problems, "the page has no table")
	}
	header := cellsOf(rows[0])
	for _, line := range rows[2:] { // after the header and its underline
		cells := cellsOf(line)
		title, column := "a retry: open, then seal the next round; "+inBytes(cells[0])+" of state", "ratio"
		if cells[0] == "number of allocations" {
			title, column = "a retry: open, then seal the next round; 256 B of state", "allocations"
		}
		for _, name := range header[1:] {
			if row, ok := tableFigures[name]; !ok || !hasCell(printed, title, row, column) {
				problems = append(problems, "no row for "+name+" with "+column+" under "+title)
			}
		}
	}
	return problems
}

func cellsOf(line string) (cells []string) {
	for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

// inBytes spells a size as the titles of the benchmark do.
func inBytes(size string) string {
	return strings.NewReplacer("1 KiB", "1024 B", "4 KiB", "4096 B").Replace(size)
}

// hasCell reports whether a table has this cell. If this machine cannot make the table, hasCell
// reports whether the table would have this row and this column.
func hasCell(printed []printedTable, title, row, column string) bool {
	for _, p := range printed {
		if !strings.HasPrefix(p.title, title) {
			continue
		}
		if p.missing != nil {
			names, columns, _ := p.shape()
			return slices.Contains(names, row) && slices.Contains(columns, column)
		}
		return p.cells[row][column] != ""
	}
	return false
}
