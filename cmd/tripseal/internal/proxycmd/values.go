package proxycmd

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// variableName matches the name of an environment variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkValues returns an error if the value of a flag is empty. The value may come from a
// variable that is not set, and without a value the proxy would silently protect less.
// checkValues also refuses a secret where the name of a file or a variable belongs, so that no
// later error repeats the secret.
func checkValues(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if err == nil {
			err = checkValue(f)
		}
	})
	return err
}

func checkValue(f *pflag.Flag) error {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	} else if _, ok := f.Value.(cli.Repeatable); ok {
		return nil // the flag's method Set has already refused an empty value
	}
	kind, _ := pflag.UnquoteUsage(f)
	for _, value := range values {
		switch {
		case value == "":
			return fmt.Errorf("--%s is empty: give a value, or leave it out", f.Name)
		case kind == "FILE" && strings.ContainsFunc(value, unicode.IsControl), kind == "FILE" && strings.Contains(value, "key1_"), kind == "FILE" && strings.Contains(value, "SECRET-KEY"):
			return fmt.Errorf("--%s is not the name of a file, but what should be in it", f.Name)
		case kind == "VARIABLE" && !variableName.MatchString(value):
			return fmt.Errorf("--%s is not the name of an environment variable", f.Name)
		}
	}
	if d, ok := f.Value.(*cli.Duration); ok && time.Duration(*d) <= 0 && f.Name != "drain" && f.Name != "drain-delay" {
		return fmt.Errorf("--%s must be more than 0s", f.Name)
	}
	return nil
}

// checkAddresses returns an error if the proxy cannot use these addresses. It does not try to
// listen.
func checkAddresses(listen, admin string) error {
	for _, of := range [][2]string{{"listen", listen}, {"admin", admin}} {
		name, address := of[0], of[1]
		if address == "" {
			continue
		}
		if path, unix := strings.CutPrefix(address, "unix:"); unix {
			if path == "" || path[0] == '@' {
				return fmt.Errorf("--%s: the socket needs a file, because its permissions say who may connect: write unix:PATH", name)
			}
			continue
		}
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("--%s: not an address such as 127.0.0.1:8080 or unix:PATH", name)
		}
	}
	if listen == admin && !slices.Contains([]string{"0", ""}, listen[strings.LastIndexByte(listen, ':')+1:]) {
		return errors.New("--listen and --admin must not be the same address")
	}
	return nil
}
