package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/internal/keyfile"
)

// durationFlag is the value of a flag that is a duration. In addition to Go's units it allows
// d, a day: 14d or 1d12h, for example.
type durationFlag time.Duration

func (d *durationFlag) Type() string { return "duration" }

func (d *durationFlag) String() string {
	if *d == 0 {
		return "0" // cobra shows no default in the help if this text is "0"
	}
	return keyfile.FormatDuration(time.Duration(*d))
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
		if ok && strings.ContainsAny(rest, "+-") { // signs are refused: 1d-23h would mean one hour
			return errors.New("not a duration such as 30m, 2h or 14d")
		}
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

// usual holds the lifetime of tokens and the clock skew that services assume if their
// keys.Options do not set them.
var usual = keyfile.Room{TTL: keyfile.UsualTTL, Skew: keyfile.UsualSkew}

// room holds the flags --ttl and --skew. They determine how long an old key must still open
// tokens.
type room struct {
	keyfile.Room // TTL is 0 if --ttl was not given, and Skew is 0 if --skew was not given
	cmd          *cobra.Command
}

func (r *room) flags(cmd *cobra.Command) {
	r.cmd = cmd
	durationVar(cmd, &r.TTL, "ttl", 0, "longest TTL of what the keys seal, cursors included (default what the file says, or 1h)")
	durationVar(cmd, &r.Skew, "skew", 0, "how far the clocks of the replicas may be off (default what the file says, or 1m)")
}

func (r *room) check() error {
	ttl, skew := r.cmd.Flags().Changed("ttl"), r.cmd.Flags().Changed("skew")
	if ttl && (r.TTL < time.Millisecond || r.TTL > keyfile.MaxTTL) || skew && (r.Skew < time.Millisecond || r.Skew > keyfile.MaxSkew) {
		return errors.New("--ttl must be more than 0 and at most ten years, --skew more than 0 and at most an hour")
	}
	return nil
}

// forChange returns the lifetime of tokens and the clock skew that a command uses when it
// changes the key file. Each is the larger of the value in the file and the value of the flag.
// If the file has no value and the flag is not given, the command uses the usual value.
func (r *room) forChange(d *keyfile.Document) keyfile.Room {
	room := d.Room().AtLeast(r.Room)
	if room.TTL == 0 {
		room.TTL = usual.TTL
	}
	if room.Skew == 0 {
		room.Skew = usual.Skew
	}
	return room
}

// forLoading returns the lifetime of tokens and the clock skew that services assume when they
// load the key file. These two times decide how long an old key must still open tokens. Each
// of them is the larger of the value in the file and the usual value. A flag replaces the
// usual value. Operators use the flag if their services set another value in keys.Options.
func (r *room) forLoading(d *keyfile.Document) keyfile.Room {
	least := r.Room
	if least.TTL == 0 {
		least.TTL = usual.TTL
	}
	if least.Skew == 0 {
		least.Skew = usual.Skew
	}
	return d.Room().AtLeast(least)
}

// warnings returns a warning if services refuse, by default, the lifetime or the skew that the
// command uses. It also returns one if the flag --ttl or --skew has no effect, because the file
// has a larger value.
func (r *room) warnings(d *keyfile.Document) (all []string) {
	room := r.forChange(d)
	if room.TTL < usual.TTL {
		all = append(all, fmt.Sprintf("services refuse a file for a TTL of less than %s, the lifetime of cursors, unless keys.Options.LongestTTL says %v", span(usual.TTL), room.TTL))
	}
	if room.Skew < usual.Skew {
		all = append(all, fmt.Sprintf("services refuse a file for a skew of less than %s unless keys.Options.Skew says %v", span(usual.Skew), room.Skew))
	}
	said := d.Room()
	if r.TTL > 0 && r.TTL < said.TTL {
		all = append(all, fmt.Sprintf("--ttl %s is less than the lifetime of %s in the file, which is used instead", keyfile.FormatDuration(r.TTL), keyfile.FormatDuration(said.TTL)))
	}
	if r.Skew > 0 && r.Skew < said.Skew {
		all = append(all, fmt.Sprintf("--skew %s is less than the skew of %s in the file, which is used instead", keyfile.FormatDuration(r.Skew), keyfile.FormatDuration(said.Skew)))
	}
	return all
}

// startFlag is the flag --in, which says when a new key begins to seal.
type startFlag struct{ in time.Duration }

func (s *startFlag) flag(cmd *cobra.Command) {
	durationVar(cmd, &s.in, "in", time.Hour, "when the new key begins to seal; the file must reach every replica before")
}

func (s *startFlag) check() error {
	if s.in < 0 || s.in > keyfile.MaxTTL {
		return errors.New("--in is not between 0s and ten years")
	}
	return nil
}

// warnings returns a warning if the new key seals so soon that some replica may not have the
// key yet.
func (s *startFlag) warnings(skew time.Duration) []string {
	if s.in >= skew {
		return nil
	}
	return []string{fmt.Sprintf("--in %v is less than the clock skew of %v: until every replica has the file, some reject what others seal", s.in, skew)}
}

// sizeFlag is the value of a flag that is a number of bytes: 4MiB or 65536, for example.
type sizeFlag int

var sizeUnits = []struct {
	name string
	size int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (s *sizeFlag) Type() string { return "size" }

func (s *sizeFlag) String() string {
	for _, unit := range sizeUnits {
		if n := int(*s); n%unit.size == 0 && n > 0 {
			return strconv.Itoa(n/unit.size) + unit.name
		}
	}
	return "0"
}

func (s *sizeFlag) Set(text string) error {
	for _, unit := range sizeUnits {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil || n == 0 || n > math.MaxInt32/uint64(unit.size) {
				break
			}
			*s = sizeFlag(int(n) * unit.size)
			return nil
		}
	}
	return errors.New("not a size such as 65536, 64KiB or 4MiB, below 2GiB")
}

// countFlag is the value of a flag that is a whole number of at least 1. A leading zero is
// refused, because some people would read the number as octal.
type countFlag int

func (c *countFlag) Type() string { return "number" }

func (c *countFlag) String() string { return strconv.Itoa(int(*c)) }

func (c *countFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return errors.New("not a whole number such as 20")
	}
	*c = countFlag(n)
	return nil
}
