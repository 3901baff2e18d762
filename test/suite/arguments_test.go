package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/tripseal/tripseal"
)

// argumentPromises are the promises about how a state is bound to the arguments.
var argumentPromises = slices.Concat(
	forCarriers(withArguments, "a state with other arguments is rejected", otherArguments),
	forCarriers(withArguments, "arguments may be spelt differently", otherSpelling),
	[]promise{
		{"tool: arguments of every type are bound", everyType},
		{"tool: numbers that a float64 cannot tell apart are told apart", largeNumbers},
		{"tool: numbers that Go misreads are refused", misreadNumbers},
		{"tool: arguments that name a member twice are refused", twice},
		{"tool: names that differ only in case cannot be swapped", swapped},
	},
	forCarriers(withArguments, "names that differ only in case may be sent again", sentAgain),
	forCarriers(withArguments, "what arrived is bound, whatever the handler does to its arguments", whatArrived),
	forCarriers(withArguments, "the arguments that the handler sees are bound, however they are spelt", seenArguments),
	forCarriers(withArguments, "arguments that are too long are refused", longArguments),
)

func otherArguments(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	for _, other := range []string{
		`{"region":"us"}`, `{"region":"EU"}`, `{"region":"eu "}`, `{"region":""}`, `{}`, "",
		`{"more":"eu"}`, `{"region":"eu","more":""}`,
	} {
		rig.rejects("arguments "+other, retry.with(other))
		reverse := rig.begin(c.from("alice").with(other))
		rig.rejects("arguments in place of "+other, reverse.with(retry.arguments))
	}
	rig.completes(retry)
}

func otherSpelling(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice").with(`{"region":"eu","more":"é/"}`))
	for _, same := range []string{
		`{"more":"é/","region":"eu"}`, "{ \"region\" :\n\"eu\",\"more\":\"é/\"}",
		`{"r\u0065gion":"\u0065u","more":"\u00e9\/"}`,
	} {
		rig.completes(retry.with(same))
	}
	none := rig.begin(c.from("alice").with(`{}`))
	rig.completes(none.with("")) // missing arguments mean the same as {}
}

func everyType(a *trial) {
	rig := a.serve(confirm)
	values := []string{`"1"`, `1`, `-1`, `1.5`, `true`, `false`, `null`, `[]`, `{}`, `[1]`, `[1,2]`, `[2,1]`, `[[1]]`,
		`{"a":1}`, `{"a":{"b":1}}`, `""`}
	for i, value := range values {
		retry := rig.begin(toolCarrier.from("alice").with(`{"v":` + value + `}`))
		rig.completes(retry)
		other := values[(i+1)%len(values)]
		rig.rejects(other+" in place of "+value, retry.with(`{"v":`+other+`}`))
		rig.rejects("nothing in place of "+value, retry.with(`{}`))
	}
}

func largeNumbers(a *trial) {
	rig := a.serve(confirm)
	retry := rig.begin(toolCarrier.from("alice").with(`{"account":9007199254740993}`))
	rig.rejects("the number before", retry.with(`{"account":9007199254740992}`))
	rig.completes(retry)
}

func misreadNumbers(a *trial) {
	rig := a.serve(confirm)
	// strconv reads this number as 0.01, though it is 1000.
	misread := `{"amount":1000` + strings.Repeat("0", 801) + `e-801}`
	rig.fails("a question for a number that Go misreads", rig.send(toolCarrier.from("alice").with(misread)))
	retry := rig.begin(toolCarrier.from("alice").with(`{"amount":1000}`))
	before := rig.runCount()
	rig.fails("a number that Go misreads", rig.send(retry.with(misread)))
	if rig.runCount() != before {
		a.failf("the handler ran with a number that Go misreads")
	}
}

func twice(a *trial) {
	const arguments = `{"region":"eu","region":"eu"}`
	rig := a.serve(confirm)
	rig.rejects("a member twice", rig.begin(toolCarrier.from("alice")).with(arguments))
	rig.fails("a question for arguments with a member twice", rig.send(toolCarrier.from("alice").with(arguments)))
}

// swapped sends two members that encoding/json reads into one field: the last one wins.
func swapped(a *trial) {
	rig := a.serve(confirm)
	retry := rig.begin(toolCarrier.from("alice").with(`{"Amount":9999,"amount":1}`))
	rig.rejects("two members in another order", retry.with(`{"amount":1,"Amount":9999}`))
	rig.completes(retry)
}

// sentAgain repeats requests, because an adapter that writes the arguments in a random order
// fails only now and then.
func sentAgain(a *trial, c carrier) {
	rig := a.serve(confirm)
	for range 30 {
		rig.completes(rig.begin(c.from("alice").with(`{"region":"eu","Region":"us","1":"a","01":"b"}`)))
	}
}

// spoil replaces the region "eu" in the arguments by "us", in place.
func spoil(arguments any) {
	v := reflect.ValueOf(arguments)
	switch {
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		copy(v.Bytes(), bytes.ReplaceAll(v.Bytes(), []byte(`"eu"`), []byte(`"us"`)))
	case v.Kind() == reflect.Map:
		if key := reflect.ValueOf("region"); v.MapIndex(key).IsValid() {
			v.SetMapIndex(key, reflect.ValueOf("us"))
		}
	}
}

func whatArrived(a *trial, c carrier) {
	rig := a.serve(func(ctx context.Context, call Call) (Result, error) {
		spoil(call.Arguments)
		if !strings.Contains(textOf(call.Arguments), `"us"`) {
			a.failf("the harness hands out arguments that a handler cannot change: %T", call.Arguments)
		}
		return askInRounds(3)(ctx, call)
	})
	request := c.from("alice")
	for round := range 3 {
		response := rig.send(request)
		if request.token = response.token(); request.token == "" {
			a.stopf("round %d: %.500s", round, response.raw)
		}
		rig.rejects("what the handler made of the arguments", request.with(`{"region":"us"}`))
		if last := rig.lastCall(); !strings.Contains(last.arguments, `"eu"`) {
			a.failf("round %d: the handler saw %s", round, last.arguments)
		}
	}
	rig.completes(request)
}

// seenArguments sends requests in which different JSON decoders find different arguments.
func seenArguments(a *trial, c carrier) {
	const eu, us = `{"region":"eu"}`, `{"region":"us"}`
	rig := a.serve(confirm)
	for _, fields := range []string{
		`"arguments":` + eu + `,"Arguments":` + us, `"Arguments":` + us + `,"arguments":` + eu,
		`"ARGUMENTS":` + us, `"arguments":` + eu + `,"arguments":` + us,
	} {
		first := c.from("alice").with("").more(fields)
		response := rig.send(first)
		if response.token() == "" {
			continue // the server refused the request
		}
		seen := rig.lastCall().arguments
		for _, other := range []string{eu, us, `{}`} {
			before := rig.runCount()
			rig.send(c.from("alice").with(other).bringing(response.token()).answering(confirmedByAnswer))
			if again := rig.lastCall().arguments; rig.runCount() > before && regionIn(again) != regionIn(seen) {
				a.failf("%s: a state that was sealed for %s opened for %s", fields, seen, again)
			}
		}
	}
}

func regionIn(arguments string) string {
	var known struct{ Region string }
	json.Unmarshal([]byte(arguments), &known) // if the text cannot be decoded, the region is ""
	return known.Region
}

func longArguments(a *trial, c carrier) {
	rig := a.serve(confirm, func(config *tripseal.Config, _ *Server) { config.MaxArguments = 100 })
	retry, long := rig.begin(c.from("alice")), `{"region":"`+strings.Repeat("e", 100)+`"}`
	rig.rejects("long arguments", retry.with(long))
	rig.fails("a question for long arguments", rig.send(c.from("alice").with(long)))
}
