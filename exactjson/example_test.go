package exactjson_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tripseal/tripseal/exactjson"
)

// An adapter reads the arguments of a paged tool.
func Example() {
	type filter struct {
		Account int64  `json:"account"`
		Status  string `json:"status"`
	}
	list := func(arguments string) error {
		rest, cursor, err := exactjson.Cut([]byte(arguments), "cursor")
		if err != nil {
			return err
		}
		if len(rest) > 64<<10 {
			return errors.New("the arguments are too long")
		}
		value, err := exactjson.Read(rest)
		if err != nil {
			return err
		}
		// Check the value with the tool's schema here.
		bound, err := exactjson.Text(value)
		if err != nil {
			return err
		}
		var in filter
		if err := exactjson.Put(value, &in, exactjson.Names{}); err != nil {
			return err
		}
		fmt.Printf("%+v after %q, bound to %s\n", in, cursor, bound)
		return nil
	}
	fmt.Println(list(`{"status": "open", "account": 9007199254740993.0, "cursor": "mc1.x"}`))
	fmt.Println(list(`{"status": "open", "Status": "closed"}`))
	// Output:
	// {Account:9007199254740993 Status:open} after "mc1.x", bound to {"account":9007199254740993,"status":"open"}
	// <nil>
	// not a text with one meaning: a name differs from another one, here or in the schema, only in upper and lower case
}

func ExampleRead() {
	value, err := exactjson.Read([]byte(`[1, 1.0, 1e19, 0.5, "\u0041"]`))
	fmt.Printf("%#v %v\n", value, err)
	_, err = exactjson.Read([]byte(`{"a": 1, "a": 2}`))
	fmt.Println(err)
	// Output:
	// []interface {}{1, 1, 0x8ac7230489e80000, 0.5, "A"} <nil>
	// not a text with one meaning
}

func ExampleText() {
	value, _ := exactjson.Read([]byte(`{"b": 1e2, "a": "\u003c"}`))
	text, err := exactjson.Text(value)
	fmt.Println(string(text), err)
	// Output: {"a":"<","b":100} <nil>
}

func ExampleCut() {
	rest, cursor, err := exactjson.Cut([]byte(`{"cursor":"mc1.x","status":"open"}`), "cursor")
	fmt.Println(string(rest), cursor, err)
	// Output: {"status":"open"} mc1.x <nil>
}

func ExamplePut() {
	var in struct {
		Small int8 `json:"small"`
	}
	value, _ := exactjson.Read([]byte(`{"small": 300}`))
	fmt.Println(exactjson.Put(value, &in, exactjson.Names{}))
	// Output: "small": a number does not fit the Go type int8
}

func ExampleNames() {
	var names exactjson.Names
	names.Add("status", "account")
	fmt.Println(names.Has("status"), names.Misspelt("Status"), names.Misspelt("limit"))
	// Output: true true false
}

func ExampleFields() {
	type page struct {
		Limit int `json:"limit"`
	}
	type list struct {
		page
		Status string
		Secret string `json:"-"`
	}
	var names []string
	for name, field := range exactjson.Fields(reflect.TypeFor[list]()) {
		names = append(names, name+" "+field.Type.String())
	}
	slices.Sort(names)
	fmt.Println(names)
	// Output: [Status string limit int]
}
