package proxycmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"go.yaml.in/yaml/v3"
)

// loadFile sets flags of cmd from a YAML file, whose fields have the names of the flags. A flag
// on the command line takes precedence over the file. The error names every wrong field.
func loadFile(cmd *cobra.Command, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return cli.Failed("--config: %w", err)
	}
	if wrong := setFields(cmd.Flags(), text); len(wrong) > 0 {
		return cli.No("%s: %s", name, strings.Join(wrong, "\n  "))
	}
	return nil
}

// setFields sets flags from the fields of a YAML document. It returns a line for each mistake
// in the document.
func setFields(flags *pflag.FlagSet, text []byte) (wrong []string) {
	var fields map[string]yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&fields); err != nil && err != io.EOF {
		// Leave out what the error has in quotes: it is from the file, and may be a secret.
		why := regexp.MustCompile("'[^']*'|`[^`]*`").ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "'…'")
		return []string{"not a list of fields in YAML: " + why}
	}
	if len(fields) == 0 {
		return []string{"the file has no fields"}
	}
	if err := decoder.Decode(new(yaml.Node)); err != io.EOF {
		return []string{"the file must be one YAML document"}
	}
	byLine := func(a, b string) int { return fields[a].Line - fields[b].Line }
	for _, name := range slices.SortedFunc(maps.Keys(fields), byLine) {
		flag, value := flags.Lookup(name), fields[name]
		at := fmt.Sprintf("line %d: ", value.Line)
		switch {
		case flag == nil || name == "config" || name == "help":
			wrong = append(wrong, at+"there is no field "+cli.QuotedArgument(name)+"; see tripseal proxy --help")
		case !flag.Changed: // the command line did not set it
			if why := setField(flags, flag, &value); why != "" {
				wrong = append(wrong, at+name+": "+why)
			}
		}
	}
	return wrong
}

// setField sets a flag from the value of a field. It returns what is wrong with the value, or
// "" if nothing is.
func setField(flags *pflag.FlagSet, flag *pflag.Flag, value *yaml.Node) string {
	values := []*yaml.Node{value}
	switch isList := isList(flag); {
	case isList && value.Kind != yaml.SequenceNode:
		return "must be a list: write - before each value, on a line of its own"
	case isList:
		values = value.Content
	}
	for _, v := range values {
		if v.Kind != yaml.ScalarNode {
			return "must be " + kindOf(flag)
		}
		switch isBool := flag.Value.Type() == "bool"; {
		case isBool && v.Tag != "!!bool":
			return "must be true or false"
		case v.Tag == "!!null":
			return "has no value; leave the field out, or write " + kindOf(flag)
		case !isBool && v.Tag != "!!str" && v.Tag != "!!int":
			return "must be " + kindOf(flag) + "; put it into quotes"
		}
		if err := flags.Set(flag.Name, v.Value); err != nil {
			var invalid *pflag.InvalidValueError
			if errors.As(err, &invalid) {
				err = invalid.Unwrap()
			}
			return err.Error()
		}
	}
	return ""
}

// isList reports whether a flag may be repeated.
func isList(flag *pflag.Flag) bool {
	_, repeats := flag.Value.(cli.Repeatable)
	return flag.Value.Type() == "stringArray" || repeats
}

func kindOf(flag *pflag.Flag) string {
	example := map[string]string{"bool": "true or false", "duration": "a duration such as 10m", "size": "a size such as 64KiB", "number": "a number"}
	return cmp.Or(example[flag.Value.Type()], "a text")
}

// checkValues returns an error if the value of a flag is empty. The value may come from a
// variable that is not set, and without a value the proxy would silently protect less.
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
	if slices.Contains(values, "") {
		return fmt.Errorf("--%s is empty: give a value, or leave it out", f.Name)
	}
	if d, ok := f.Value.(*cli.Duration); ok && time.Duration(*d) <= 0 && f.Name != "drain" && f.Name != "drain-delay" {
		return fmt.Errorf("--%s must be more than 0s", f.Name)
	}
	return nil
}
