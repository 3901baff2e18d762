// Command interop exchanges tokens and cursors between tripseal and published releases of
// other implementations. The states, arguments and bindings are random. Each side must open
// what the other made, and refuse a token that was changed or that comes with a wrong
// request. The script ./run installs the other implementations.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

func main() {
	var (
		cases = flag.Int("n", 600, "how many tokens each way, for each peer")
		seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "the seed of the random cases, to repeat a run")
		node  = flag.String("node", "", "the node that runs the TypeScript peer")
		ts    = flag.String("typescript", "", "the script of the TypeScript peer")
		py    = flag.String("python", "", "the python that runs the Python peer")
		pySrc = flag.String("python-script", "", "the script of the Python peer")
		rust  = flag.String("atd", "", "the program of the ATD peer")
	)
	flag.Parse()
	fmt.Printf("seed %d\n", *seed)
	failed := false
	for _, run := range []struct {
		name string
		args []string
		next func(*peer, *random) (*exchange, error) // makes a random case
	}{
		{"TypeScript SDK", []string{*node, *ts}, typeScriptExchange},
		{"Python SDK", []string{*py, *pySrc}, pythonExchange},
		{"ATD runtime", []string{*rust}, atdExchanges()},
	} {
		p, err := startPeer(run.args...)
		if err != nil {
			fmt.Printf("%-16s %v\n", run.name, err)
			failed = true
			continue
		}
		var r report
		random := &random{rand.New(rand.NewPCG(*seed, 1))}
		for n := 0; n < *cases && err == nil; n++ {
			var e *exchange
			if e, err = run.next(p, random); err == nil {
				if err = e.play(p, random, &r); err != nil {
					err = fmt.Errorf("%w; the case is %v", err, e.request)
				}
			}
		}
		if err = errors.Join(err, p.stop()); err != nil {
			fmt.Printf("%-16s FAILED after %v: %v\n", run.name, r, err)
			failed = true
			continue
		}
		fmt.Printf("%-16s %v\n", run.name, r)
	}
	if failed {
		os.Exit(1)
	}
}

// report counts the exchanges with a correct outcome.
type report struct {
	ours    int // how many of our tokens the peer opened
	theirs  int // how many of the peer's tokens we opened
	refused int // how many changed tokens and wrong requests the peer refused
	refuse  int // how many changed tokens and wrong requests we refused
}

func (r report) String() string {
	return fmt.Sprintf("%d of ours opened there, %d of theirs opened here, %d changed ones refused there, %d here",
		r.ours, r.theirs, r.refused, r.refuse)
}
