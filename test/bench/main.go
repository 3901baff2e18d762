// Bench compares the speed of tripseal with the least possible work (AES-GCM and base64
// alone) and with what a Go server would use instead of tripseal. The contenders of a table
// take turns in one run on one goroutine, so that noise affects all of them alike. Compare
// only the ratios: the times depend on the machine.
//
//	go run . [-only TEXT] [-budget DURATION]
package main

import (
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

func main() {
	playRole()
	budget := flag.Duration("budget", 90*time.Second, "how long to measure in all")
	only := flag.String("only", "", "measure only what has this in its title")
	flag.Parse()

	defer runtime.KeepAlive(ballast)
	defer cleanUp()
	all := slices.DeleteFunc(comparisons(), func(c comparison) bool { return !strings.Contains(c.title, *only) })
	if len(all) == 0 {
		fmt.Fprintf(os.Stderr, "no comparison has %q in its title\n", *only)
		cleanUp()
		os.Exit(2)
	}
	for i, c := range all {
		fmt.Fprintf(os.Stderr, "%d/%d %s\n", i+1, len(all), c.title)
		if c.missing != nil {
			fmt.Fprintf(os.Stderr, "left out: %v\n", c.missing)
			continue
		}
		c.table(*budget / time.Duration(len(all))).print(os.Stdout)
	}
}

// comparison is what makes one table.
type comparison struct {
	title   string
	missing error // why the comparison cannot be made on this machine; nil if it can

	measure func(budget time.Duration) table // if nil, the table has the times of the contenders and remotes

	contenders []contender
	remotes    []remote
	limits     []limit // the targets of the contenders
}

func (c comparison) table(budget time.Duration) (t table) {
	if c.measure != nil {
		t = c.measure(budget)
	} else {
		t = timesOf(measure(c.contenders, c.remotes, budget), c.limits)
	}
	t.title = c.title
	return t
}

func retryTitle(size int) string {
	return fmt.Sprintf("a retry: open, then seal the next round; %d B of state, one question, every claim", size)
}

func comparisons() (all []comparison) {
	// 273 too, because 256 happens to fit the block sizes of the contender "floor", which then looks too fast.
	for _, size := range []int{64, 256, 273, 1024, 4096} {
		c := comparison{title: retryTitle(size), contenders: tokenContenders(size)}
		if most := map[int]float64{256: 2.6, 1024: 1.5}[size]; most > 0 {
			c.limits = []limit{{"tripseal", ratio, most}, {"tripseal", allocations, 4}}
		}
		all = append(all, c)
	}
	for i, text := range argumentTexts() {
		c := comparison{title: "digest of the arguments, " + text.name, contenders: digestContenders(text.json)}
		if i == 0 {
			c.limits = []limit{{"tripseal", ratio, 1.4}}
		}
		all = append(all, c)
	}
	all = append(all, cursorComparison())
	all = append(all, peerComparisons()...)
	all = append(all, useComparisons()...)
	all = append(all, coreComparisons()...)
	all = append(all,
		comparison{title: "open, by the number of keys in the ring; 256 B of state", contenders: ringContenders()},
	)
	all = append(all, adapterComparisons()...)
	all = append(all, elicitComparisons()...)
	all = append(all, doorComparisons()...)
	all = append(all, proxyComparisons()...)
	return append(all,
		comparison{title: "growth: the CPU time by the size", measure: growths},
		comparison{title: "scaling: two goroutines on two cores against one", measure: scalings},
	)
}
