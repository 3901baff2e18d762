package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tripseal/tripseal/internal/keyfile"
)

// Duration is the value of a flag that is a duration. In addition to Go's units it allows
// d, a day: 14d or 1d12h, for example.
type Duration time.Duration

func (d *Duration) Type() string { return "duration" }

func (d *Duration) String() string {
	if *d == 0 {
		return "0" // cobra shows no default in the help if this text is "0"
	}
	return keyfile.FormatDuration(time.Duration(*d))
}

func (d *Duration) Set(text string) error {
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
	*d = Duration(time.Duration(n)*Day + more)
	return nil
}

// Between returns a flag that is a duration between two others.
func Between(d *time.Duration, least, most time.Duration) pflag.Value {
	return &between{(*Duration)(d), least, most}
}

type between struct {
	*Duration
	least, most time.Duration
}

func (b *between) Set(text string) error {
	was := *b.Duration
	err := b.Duration.Set(text)
	if d := time.Duration(*b.Duration); err == nil && (d < b.least || d > b.most) {
		*b.Duration = was
		err = fmt.Errorf("not between %s and %s", keyfile.FormatDuration(b.least), keyfile.FormatDuration(b.most))
	}
	return err
}

// DurationVar adds a flag that is a duration.
func DurationVar(cmd *cobra.Command, d *time.Duration, name string, otherwise time.Duration, text string) {
	*d = otherwise
	cmd.Flags().Var((*Duration)(d), name, text)
}

// Size is the value of a flag that is a number of bytes: 4MiB or 65536, for example.
type Size int

var sizeUnits = []struct {
	name string
	size int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (s *Size) Type() string { return "size" }

func (s *Size) String() string {
	for _, unit := range sizeUnits {
		if n := int(*s); n%unit.size == 0 && n > 0 {
			return strconv.Itoa(n/unit.size) + unit.name
		}
	}
	return "0"
}

func (s *Size) Set(text string) error {
	for _, unit := range sizeUnits {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil || n == 0 || n > math.MaxInt32/uint64(unit.size) {
				break
			}
			*s = Size(int(n) * unit.size)
			return nil
		}
	}
	return errors.New("not a size such as 65536, 64KiB or 4MiB, below 2GiB")
}

// Number is the value of a flag that is a whole number of at least 1. A leading zero is
// refused, because some people would read the number as octal.
type Number int

func (c *Number) Type() string { return "number" }

func (c *Number) String() string { return strconv.Itoa(int(*c)) }

func (c *Number) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return errors.New("not a whole number such as 20")
	}
	*c = Number(n)
	return nil
}

// Repeatable is a flag that may be given several times. It calls a function with each value, in the
// order of the command line.
type Repeatable struct {
	kind    string
	onValue func(string) error
}

// Each returns a flag that calls onValue with each value. In the help, a value is called kind.
func Each(kind string, onValue func(string) error) Repeatable { return Repeatable{kind, onValue} }

func (e Repeatable) String() string        { return "" }
func (e Repeatable) Type() string          { return e.kind }
func (e Repeatable) Set(text string) error { return e.onValue(text) }
