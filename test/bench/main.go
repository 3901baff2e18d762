// Bench compares the speed of tripseal with the least possible work (AES-GCM and base64
// alone) and with what a Go server would use instead of tripseal. The contenders of a table
// take turns in one run on one goroutine, so that noise affects all of them alike. Compare
// only the ratios: the times depend on the machine.
//
//	go run .          a table
//	go run . -json    the same as JSON
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ballast makes the heap as large as that of a small server. Without it, the garbage
// collector would run after every few megabytes of garbage, more often than in a server.
var ballast = make([]byte, 64<<20)

// table is the result of one comparison. Ratios are relative to the first row.
type table struct {
	Title   string    `json:"title"`
	Rows    []row     `json:"rows,omitempty"`
	Sizes   []size    `json:"sizes,omitempty"`
	Growth  []growth  `json:"growth,omitempty"`
	Scaling []scaling `json:"scaling,omitempty"`
	Hops    []hop     `json:"hops,omitempty"`
	Target  *verdict  `json:"target,omitempty"` // nil if the comparison has no target
}

// verdict says whether the last row of a table meets its target for allocations.
type verdict struct {
	Most float64 `json:"most"` // the highest value of More that is allowed
	More float64 `json:"more"` // how many more allocations the last row has than the first row
	Met  bool    `json:"met"`
}

func main() {
	playRole()
	asJSON := flag.Bool("json", false, "print JSON")
	budget := flag.Duration("budget", 90*time.Second, "how long to measure in all")
	only := flag.String("only", "", "measure only what has this in its title")
	flag.Parse()

	defer runtime.KeepAlive(ballast)
	defer cleanUp()
	comparisons := slices.DeleteFunc(comparisons(), func(c comparison) bool { return !strings.Contains(c.title, *only) })
	if len(comparisons) == 0 {
		fmt.Fprintf(os.Stderr, "no comparison has %q in its title\n", *only)
		cleanUp()
		os.Exit(2)
	}
	each := *budget / time.Duration(len(comparisons))
	var tables []table
	for i, c := range comparisons {
		fmt.Fprintf(os.Stderr, "%d/%d %s\n", i+1, len(comparisons), c.title)
		if c.missing != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", c.missing)
			continue
		}
		tables = append(tables, c.table(each))
	}
	fmt.Fprintln(os.Stderr)
	if *asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(tables); err != nil {
			fmt.Fprintln(os.Stderr, err)
			cleanUp()
			os.Exit(1)
		}
		return
	}
	for _, t := range tables {
		t.print(os.Stdout)
	}
}

type comparison struct {
	title      string
	most       float64 // the target: how many more allocations the last row may make than the first; 0 means no target
	contenders []contender
	remotes    []remote
	missing    error // why the comparison cannot be made on this machine; nil if it can

	// At most one of these functions is set. If all are nil, the table has the times of the
	// contenders and remotes.
	sizes   func() []size
	rows    func(budget time.Duration) []row // measures times in its own way
	growth  func(budget time.Duration) []growth
	scaling func(budget time.Duration) []scaling
	hops    func(budget time.Duration) []hop
}

func (c comparison) table(budget time.Duration) table {
	if c.sizes != nil {
		return table{Title: c.title, Sizes: c.sizes()}
	}
	if c.growth != nil {
		return table{Title: c.title, Growth: c.growth(budget)}
	}
	if c.scaling != nil {
		return table{Title: c.title, Scaling: c.scaling(budget)}
	}
	if c.hops != nil {
		return table{Title: c.title, Hops: c.hops(budget)}
	}
	if c.rows != nil {
		return table{Title: c.title, Rows: c.rows(budget)}
	}
	measured := table{Title: c.title, Rows: measure(c.contenders, c.remotes, budget)}
	if c.most > 0 {
		measured.Target = judge(measured.Rows, c.most)
	}
	return measured
}

func judge(rows []row, most float64) *verdict {
	more := *rows[len(rows)-1].Allocs - *rows[0].Allocs
	return &verdict{Most: most, More: more, Met: more <= most}
}

func retryTitle(size int) string {
	return fmt.Sprintf("a retry: open, then seal the next round; %d B of state, one question, every claim", size)
}

func comparisons() []comparison {
	var all []comparison
	for _, size := range []int{64, 256, 273, 1024, 4096} { // 273 too, because 256 happens to fit the block sizes of the contender "floor", which then looks too fast
		all = append(all, comparison{
			title:      retryTitle(size),
			contenders: tokenContenders(size),
		})
	}
	for _, text := range argumentTexts() {
		all = append(all, comparison{title: "digest of the arguments, " + text.name, contenders: digestContenders(text.json)})
	}
	const members = 65_536
	all = append(all,
		comparison{title: fmt.Sprintf("digest of the arguments, %d members", members), contenders: memberContenders(members)},
		cursorComparison())
	all = append(all, peerComparisons()...)
	all = append(all, useComparisons()...)
	all = append(all, coreComparisons()...)
	all = append(all,
		comparison{title: "open, by the number of keys in the ring; 256 B of state", contenders: ringContenders()},
		comparison{title: "the adapter for the official SDK, in memory", contenders: adapterContenders(inMemory)},
		comparison{title: "the adapter for the official SDK, HTTP on loopback", contenders: adapterContenders(overHTTP)},
		comparison{title: "a server that lives for one request, with the middleware", contenders: installContenders()},
	)
	all = append(all, elicitComparisons()...)
	all = append(all, adapterComparisons()...)
	all = append(all, mcpgoComparisons()...)
	all = append(all, proxyComparisons()...)
	all = append(all, growthComparisons()...)
	return append(all, scalingComparison())
}
