package main

import (
	"fmt"
	"io"
	"strings"
)

// table is what is printed of one comparison.
type table struct {
	title   string
	columns []string
	rows    []line
	notes   []string
	targets []verdict
}

type line struct {
	name  string
	cells []string // one for each column; "" if there is no figure
}

// verdict says whether a target is met.
type verdict struct {
	target string
	missed []string // what misses the target
}

func (t *table) add(name string, cells ...string) { t.rows = append(t.rows, line{name, cells}) }

func (t table) print(w io.Writer) {
	widths := make([]int, len(t.columns))
	for i, column := range t.columns {
		widths[i] = len(column)
		for _, row := range t.rows {
			widths[i] = max(widths[i], len(row.cells[i]))
		}
	}
	fmt.Fprintf(w, "\n%s\n\n", t.title)
	for _, row := range append([]line{{"", t.columns}}, t.rows...) {
		fmt.Fprintf(w, "%-46s", row.name)
		for i, cell := range row.cells {
			fmt.Fprintf(w, "  %*s", widths[i], cell)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, note := range t.notes {
		fmt.Fprintln(w, note)
	}
	for _, v := range t.targets {
		fmt.Fprintln(w, v)
	}
}

func (v verdict) String() string {
	outcome := "met"
	if len(v.missed) > 0 {
		outcome = "missed by " + strings.Join(v.missed, "; ")
	}
	return fmt.Sprintf("target: %s: %s", v.target, outcome)
}
