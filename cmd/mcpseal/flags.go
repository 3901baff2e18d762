package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// durationFlag is a duration that may also have days: 14d, 1d12h.
type durationFlag time.Duration

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) String() string {
	text := time.Duration(*d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (d *durationFlag) Set(text string) error {
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return errors.New("not a duration such as 30m, 2h or 14d")
	}
	var more time.Duration
	if rest != "" {
		if more, err = time.ParseDuration(rest); err != nil {
			return errors.New("not a duration such as 30m, 2h or 14d")
		}
	}
	*d = durationFlag(time.Duration(n)*day + more)
	return nil
}

func durationVar(cmd *cobra.Command, d *time.Duration, name string, otherwise time.Duration, text string) {
	*d = otherwise
	cmd.Flags().Var((*durationFlag)(d), name, text)
}

const tenYears = 10 * 365 * day

// What services assume unless their keys.Options say otherwise.
const (
	usualTTL  = time.Hour
	usualSkew = time.Minute
)

// room are the flags that say how long an old key is needed.
type room struct{ keyfile.Room }

func (r *room) flags(cmd *cobra.Command) {
	durationVar(cmd, &r.TTL, "ttl", usualTTL, "longest TTL of what the keys seal, cursors included")
	durationVar(cmd, &r.Skew, "skew", usualSkew, "how far the clocks of the replicas may be off")
}

func (r *room) check() error {
	if r.TTL <= 0 || r.Skew < 0 || r.TTL > tenYears || r.Skew > time.Hour {
		return errors.New("--ttl is more than 0 and at most ten years, --skew at most an hour")
	}
	return nil
}

// warnings says what services will not take by default.
func (r *room) warnings() (all []string) {
	if r.TTL < usualTTL {
		all = append(all, fmt.Sprintf("services refuse a file for a TTL of less than %s, what cursors live, unless keys.Options.LongestTTL says %v", span(usualTTL), r.TTL))
	}
	if r.Skew < usualSkew {
		all = append(all, fmt.Sprintf("services refuse a file for a skew of less than %s unless keys.Options.Skew says %v", span(usualSkew), r.Skew))
	}
	return all
}

// startFlag is the flag that says when a new key seals.
type startFlag struct{ in time.Duration }

func (s *startFlag) flag(cmd *cobra.Command) {
	durationVar(cmd, &s.in, "in", time.Hour, "when the new key begins to seal; the file must reach every replica before")
}

func (s *startFlag) check() error {
	if s.in < 0 || s.in > tenYears {
		return errors.New("--in is not between 0s and ten years")
	}
	return nil
}

// warnings says what is too soon.
func (s *startFlag) warnings(skew time.Duration) []string {
	if s.in >= skew {
		return nil
	}
	return []string{fmt.Sprintf("--in %v is less than the clock skew of %v: until every replica has the file, some reject what others seal", s.in, skew)}
}
