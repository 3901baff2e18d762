package sealtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal/sealtest"
)

func TestASoundAdapterKeepsItsPromises(t *testing.T) { sealtest.Adapter(t, fakeWith(""), nil) }

var faults = map[string][]string{
	"no state":{}, "no target":{}, "no method":{}, "no arguments":{}, "arguments byte by byte":{}, "arguments that the handler changes":{}, "arguments as floats":{}, "arguments as strings":{}, "unknown targets first":{}, "an empty state counts":{}, "trimmed tokens":{}, "long tokens are ignored":{}, "opens twice":{}, "logs tokens":{}, "errors are rejections":{}, "always a token":{}, "states of complete results":{}, "asks everybody":{}, "a flow for each round":{}, "no token without a state":{}, "no token without a question":{}, "cached tokens":{}, "the first question alone":{}, "the state beside the token":{}, "the state if it is not sealed":{}, "rejections tell":{}, "rejections in other words":{}, "no RejectedText":{}, "RejectedText everywhere":{}, "a no with content":{}, "answers of first calls":{}, "answers of rejected calls":{}, "all answers":{}, "answers of any kind":{}, "answers with holes":{}, "silent drops":{}, "cursors for everybody":{}, "cursors for every list":{}, "trimmed cursors":{}, "plain cursors":{}, "no user":{}, "failed principals are nobody":{}, "everybody may be nobody":{}, "failed principals are told":{}, "panics tell":{}, "its own audience":{}, "its own policy for single use":{}, "its own policy for expiry":{}, "its own keys":{}, "its own limits":{}, "its own users":{},
}

func TestX(t *testing.T) {
	for fault := range faults {
		for _, name := range sealtest.AdapterPromises() {
			if !strings.HasPrefix(name, "prompt:") && !strings.HasPrefix(name, "resource") && !strings.HasPrefix(name, "template") && !strings.HasPrefix(name, "list of prompts") && !strings.HasPrefix(name, "list of res") {
				if f := sealtest.AdapterFailures(t, name, fakeWith(fault)); len(f) > 0 {
					t.Logf("%s || %s || %.300s", fault, name, f[0])
				}
			}
		}
	}
	_ = slices.All[[]int]
}
