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
// A typed handler also reads all digits of a whole number, but the decoded form has only the
// nearest float64. The code does not refuse a number just because the two differ. Otherwise
// no long number could be sent to a server with mcp-go's own middleware for recovery, which
// is also added before Protect. But if the arguments were changed, the code refuses a number
// that may have been written anew from a float64.

const (
	errTwins = mcpseal.PlainError("an object in the arguments has two equal names, or names that differ only in upper and lower case: " +
		"a hook or middleware and a typed handler could read different values. The client must send each name once, " +
		"and a hook must not add a name beside the client's spelling of it")
	errMoved = mcpseal.PlainError("a hook or middleware changed arguments that have a number of 2^53 or more, and the number may have been rounded: pass long ids as strings")
)

// checkAlike returns an error if a hook or middleware and the handler may read different
// values from the same arguments. If the arguments were changed, it checks both what the
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

// checkRequest returns an error if mcp-go and a hook that gets whole requests may read
// different methods, tools or values from the same request.
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
	if request.Method != mcp.MethodToolsCall {      // for a tool, checkAlike checks the arguments
		isDistinct = isDistinct && exactjson.Distinct(request.Params.Arguments)
	}
	if isDistinct {
		return nil
	}
	p.logger().WarnContext(ctx, "mcpgo: a request was refused: it has two equal names, or names that differ only in upper and lower case, so a hook could read it differently from mcp-go")
	return errParams
}

// refuseArguments logs why the arguments of a call were refused, and returns the error for
// the client. For errDisagree, errCleared, errCalled, errLost, errRenamed and errRepeated, that is an internal error,
// because only the author of the server can have caused them.
func (p *Protection) refuseArguments(ctx context.Context, tool string, why error) error {
	if why == errDisagree || why == errCleared || why == errCalled || why == errLost || why == errRenamed || why == errRepeated {
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

// maxExact is the greatest length, in characters, of a number with a point or an exponent
// that is still read exactly. A longer one is not read: it counts as a number of 2^53 or
// more, and as fragile (see isFragile).
const maxExact = 64

// hasLong reports whether a JSON text has a number of 2^53 or more.
func hasLong(text []byte) bool {
	for range longNumbers(text) {
		return true
	}
	return false
}

// mayBeRounded compares an older and a newer JSON text. It reports whether the newer text may
// have a rounded number: a number of the older text that was decoded into a float64 and
// written again. It returns true if the older text has a fragile number (see isFragile), the
// newer text has a number of 2^53 or more, and one of two things happened: a number of 2^53
// or more was added, or a fragile number is gone. Each number is counted as often as it
// occurs, so a client cannot send a number twice to hide that one of the two is gone.
func mayBeRounded(newer, older []byte) bool {
	if !hasLong(newer) || !hasFragile(older) {
		return false
	}
	left := make(map[string]int)
	for number := range longNumbers(older) {
		left[number]++
	}
	for number := range longNumbers(newer) {
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

// isFragile reports whether a number of 2^53 or more is a whole number that changes if
// encoding/json decodes it into a float64 and writes it again. This can happen even if the
// float64 holds the number exactly, because encoding/json writes only as many digits as the
// float64 needs. A number of more than 64 bits is not fragile if it is written with a point or
// an exponent, in at most maxExact characters: no integer type of Go, not even big.Int, reads
// such a number from JSON.
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
