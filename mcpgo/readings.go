package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"math"
	"math/big"
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
// with such names. It refuses them even if nothing was changed: a hook may find that a value
// is already the one that it would set. Such a hook changes nothing, but relies on what it
// read.
//
// A typed handler also reads all digits of a whole number, where the decoded form has a
// float64. Such numbers are not refused. Otherwise no long number could be sent to a server
// with mcp-go's own middleware for recovery, which is such middleware too. But if the
// arguments were changed, a number is refused if it may have been written anew from a
// float64.

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

// checkRequest returns an error if a hook for whole requests may have read another method,
// tool or value from a request than mcp-go.
func (p *Protection) checkRequest(ctx context.Context, message any) error {
	text, ok := message.(json.RawMessage)
	if !ok {
		return nil
	}
	var request struct {
		Method mcp.MCPMethod
		Params struct{ Arguments json.RawMessage }
	}
	json.Unmarshal(text, &request)                  // if this fails, mcp-go refuses the request
	isDistinct := exactjson.DistinctWithin(text, 2) // the names in the message, and those in its params
	if request.Method != mcp.MethodToolsCall {      // checkAlike compares the arguments of a tool
		isDistinct = isDistinct && exactjson.Distinct(request.Params.Arguments)
	}
	if isDistinct {
		return nil
	}
	p.logger().WarnContext(ctx, "mcpgo: a request was refused: it has two equal names, or names that differ only in upper and lower case, so a hook could read it differently from mcp-go")
	return errParams
}

// refuseArguments logs why the arguments of a call were refused, and returns the error for
// the client. For errDisagree, errLost and errRenamed, that is an internal error, because
// only the author of the server can have caused them.
func (p *Protection) refuseArguments(ctx context.Context, tool string, why error) error {
	if why == errDisagree || why == errLost || why == errRenamed || why == errRepeated {
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
				isTooLong := len(literal) > maxExact && bytes.ContainsAny(literal, ".eE") // strconv may misread it
				if number := string(literal); (isTooLong || math.Abs(floatOf(number)) >= 1<<53) && !yield(number) {
					return
				}
			}
		}
	}
}

// maxExact is the length up to which a number with a point or an exponent is read exactly. A
// longer one counts as long and as fragile.
const maxExact = 64

// hasLong reports whether a JSON text has a number of 2^53 or more.
func hasLong(text []byte) bool {
	for range longNumbers(text) {
		return true
	}
	return false
}

// mayBeRounded reports whether a number in a JSON text may be what a float64 has left of a
// number in the older text. This is so if the older text has a fragile number, the text has
// a long number, and one of two things happened: a long number was added, or a fragile one
// is gone. Equal numbers are counted, so a client cannot send a second number that hides
// the first.
func mayBeRounded(text, older []byte) bool {
	if !hasLong(text) || !hasFragile(older) {
		return false
	}
	left := make(map[string]int)
	for number := range longNumbers(older) {
		left[number]++
	}
	for number := range longNumbers(text) {
		if left[number]--; left[number] < 0 {
			return true
		}
	}
	for number, missing := range left {
		if missing > 0 && isFragile(number) {
			return true
		}
	}
	return false
}

// hasFragile reports whether a JSON text has a fragile number.
func hasFragile(text []byte) bool {
	for number := range longNumbers(text) {
		if isFragile(number) {
			return true
		}
	}
	return false
}

// isFragile reports whether a long number is a whole number that is written as another one
// after encoding/json has decoded it into a float64. This can happen even if the float64
// holds the number exactly, because encoding/json writes only as many digits as the float64
// needs. A number of more than 64 bits counts only if it is written without a point and an
// exponent, because no integer type of Go can read it in another form.
func isFragile(number string) bool {
	if strings.ContainsAny(number, ".eE") {
		if len(number) > maxExact {
			return true // nobody writes such numbers, and reading one exactly takes quadratic time
		}
		if math.Abs(floatOf(number)) > math.MaxUint64 {
			return false
		}
		exact, _, err := big.ParseFloat(number, 10, 256, big.ToNearestEven)
		if err != nil || !exact.IsInt() {
			return err != nil
		}
		number = exact.Text('f', 0)
	}
	return strconv.FormatFloat(floatOf(number), 'f', -1, 64) != number
}

// floatOf returns the float64 that encoding/json reads for a number. The result is
// infinite if the number is too large.
func floatOf(number string) float64 {
	f, _ := strconv.ParseFloat(number, 64)
	return f
}
