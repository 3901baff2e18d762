package mcpgo

import (
	"bytes"
	"context"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/exactjson"
	"github.com/mcpseal/mcpseal/mcpgo/internal/passage"
)

// A hook, and middleware that was added before Protect, usually reads the decoded
// arguments. A typed handler decodes the text again, into a struct, and can get other
// values: this decoding ignores the case of names, and merges two objects with one name.
// So if a hook or such middleware sees a call, the code in this file refuses arguments
// with such names. It refuses them even if nothing was changed: a hook that reads the
// value that it would set changes nothing, but relies on what it read.
//
// A typed handler also reads all digits of a whole number, where the decoded form has a
// float64. Such numbers pass: mcp-go's own middleware for recovery counts as one of the
// others, and with it no long number could be sent. But if the arguments were changed, no
// number may be one that was written anew from a float64.

const (
	errTwins = mcpseal.PlainError("an object in the arguments has two equal names, or names that differ only in upper and lower case: " +
		"a hook or middleware and a typed handler could read different values. The client must send each name once, " +
		"and a hook must not add a name beside the client's spelling of it")
	errMoved = mcpseal.PlainError("a hook or middleware changed arguments that have a number of 2^53 or more, and the number may have been rounded: pass long ids as strings")
)

// checkAlike returns an error if a hook or middleware may have read other values from the
// arguments than the handler. If the arguments were changed, it checks both what the
// client sent and what the handler gets.
func checkAlike(a *passage.Arguments) error {
	if a.Alike {
		return nil
	}
	isChanged := !bytes.Equal(a.Sent, a.Settled)
	if !exactjson.Distinct(a.Sent) || isChanged && !exactjson.Distinct(a.Settled) {
		return errTwins
	}
	a.Alike = true
	return nil
}

// refuseArguments logs why the arguments of a call were refused, and returns the error for
// the client. A disagreement and a lost arrival are the author's fault alone.
func (p *Protection) refuseArguments(ctx context.Context, tool string, why error) error {
	if why == errDisagree || why == errLost || why == errRenamed {
		return p.refuse(ctx, string(mcp.MethodToolsCall), why.Error())
	}
	p.logger().WarnContext(ctx, "mcpgo: the arguments of a call were refused", "tool", mcpseal.PlainText(tool), "cause", why.Error())
	return errParams
}

// longNumbers returns the numbers in a JSON text whose float64 is 2^53 or more, as they
// are written. A float64 cannot hold every whole number beyond 2^53.
func longNumbers(text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; at < len(text); at++ {
			switch c := text[at]; {
			case c == '"':
				for at++; at < len(text) && text[at] != '"'; at++ {
					if text[at] == '\\' {
						at++
					}
				}
			case c == '-' || '0' <= c && c <= '9':
				start := at
				for at+1 < len(text) && strings.IndexByte("0123456789.eE+-", text[at+1]) >= 0 {
					at++
				}
				literal := text[start : at+1]
				if len(literal) < len("9007199254740992") && !bytes.ContainsAny(literal, "eE") {
					continue
				}
				if number := string(literal); math.Abs(floatOf(number)) >= 1<<53 && !yield(number) {
					return
				}
			}
		}
	}
}

// hasLong reports whether a JSON text has a number of 2^53 or more.
func hasLong(text []byte) bool {
	for range longNumbers(text) {
		return true
	}
	return false
}

// mayBeRounded reports whether a number in a JSON text may be what a float64 has left of a
// number in the text was. It may be, if was has a whole number that a float64 does not hold
// exactly, and text has a long number that was does not have, or has it more often.
func mayBeRounded(text, was []byte) bool {
	if !hasLong(text) || !hasRounded(was) {
		return false
	}
	left := make(map[string]int)
	for number := range longNumbers(was) {
		left[number]++
	}
	for number := range longNumbers(text) {
		if left[number]--; left[number] < 0 {
			return true
		}
	}
	return false
}

// hasRounded reports whether a JSON text has a whole number that a float64 does not hold
// exactly. A number of more than 64 bits counts only if it is written without a point and
// an exponent, because no integer type of Go can read it in another form.
func hasRounded(text []byte) bool {
	for number := range longNumbers(text) {
		f := floatOf(number)
		if !strings.ContainsAny(number, ".eE") {
			if strconv.FormatFloat(f, 'f', 0, 64) != number {
				return true
			}
		} else if math.Abs(f) <= math.MaxUint64 {
			if value, err := exactjson.Read([]byte(number)); err != nil || rounds(value) {
				return true
			}
		}
	}
	return false
}

// floatOf returns the float64 that encoding/json reads for a number. The result is
// infinite if the number is too large.
func floatOf(number string) float64 {
	f, _ := strconv.ParseFloat(number, 64)
	return f
}
