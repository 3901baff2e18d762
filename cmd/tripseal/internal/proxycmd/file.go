package proxycmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
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
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err == io.EOF {
		return []string{"the file has no fields"}
	} else if err != nil {
		return []string{notYAML(err)}
	}
	if err := decoder.Decode(&more); err != io.EOF {
		return []string{"the file must be one YAML document"}
	}
	fields := document.Content[0]
	if fields.Kind != yaml.MappingNode {
		return []string{"the file must be a list of fields, such as audience: release.example.com"}
	}
	set := make(map[string]bool)
	onTop := make(map[string]bool)
	flags.Visit(func(f *pflag.Flag) { onTop[f.Name] = true })
	for i := 0; i < len(fields.Content); i += 2 {
		field, value := fields.Content[i], fields.Content[i+1]
		at := fmt.Sprintf("line %d: ", field.Line)
		flag := flags.Lookup(field.Value)
		switch {
		case field.Kind != yaml.ScalarNode:
			wrong = append(wrong, at+"the name of a field is missing")
		case flag == nil || flag.Name == "config" || flag.Name == "help":
			wrong = append(wrong, at+"there is no field "+cli.QuotedArgument(field.Value)+"; see tripseal proxy --help")
		case set[field.Value]:
			wrong = append(wrong, at+field.Value+" is there twice; keep one")
		case !onTop[field.Value]:
			if why := setField(flags, flag, value); why != "" {
				wrong = append(wrong, at+field.Value+": "+why)
			}
		}
		set[field.Value] = true
	}
	return wrong
}

func notYAML(err error) string {
	// Leave out what the error has in quotes: it is from the file, and may be a secret.
	return "not YAML: " + regexp.MustCompile(`'[^']*'`).ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "'…'")
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
