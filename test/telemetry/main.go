// Command telemetry runs a flow of three rounds over two replicas, and then a mixed load. It
// prints the traces and the metrics that real exporters write.
//
//	go run ./test/telemetry
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the load provokes many rejections
	if err := show(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// show prints the traces of one flow, and the metrics of the first replica after a mixed load.
func show(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "telemetry")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fleet, err := newFleet(filepath.Join(dir, "keys"))
	if err != nil {
		return err
	}
	defer fleet.close()
	if err := fleet.flow(ctx); err != nil {
		return err
	}
	spans, err := fleet.spans()
	if err != nil {
		return err
	}
	printSpans(w, spans)
	if err := fleet.load(ctx); err != nil {
		return err
	}
	text, err := fleet.replicas[0].scrape(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	printMetrics(w, text)
	return nil
}

// printSpans prints the spans that have events of tripseal.
func printSpans(w io.Writer, spans []span) {
	for _, s := range spans {
		if len(s.Events) == 0 {
			continue
		}
		fmt.Fprintf(w, "trace %s, %s: span %s, %s\n", s.SpanContext.TraceID, s.attribute(s.Resource, "service.instance.id"), s.Name,
			strings.Join(texts(s.Attributes), " "))
		for _, e := range s.Events {
			fmt.Fprintf(w, "    %s\n", e.Name)
			line := "       "
			for _, text := range texts(e.Attributes) {
				if len(line)+len(text) > 110 {
					fmt.Fprintln(w, line)
					line = "       "
				}
				line += " " + text
			}
			fmt.Fprintln(w, line)
		}
	}
}

// printMetrics prints the series of tripseal. Of a histogram it prints only the count.
func printMetrics(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "tripseal_") && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "_sum{") {
			fmt.Fprint(w, line)
		}
	}
}

func texts(attrs []attr) (all []string) {
	for _, a := range attrs {
		all = append(all, fmt.Sprintf("%s=%v", a.Key, a.Value.Value))
	}
	slices.Sort(all)
	return all
}
