package strictjson

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	referenceMaxText  = 16 << 20
	referenceMaxDepth = 128
)

// A parsed value is nil (null), a bool, or one of these.
type (
	referenceNumber struct {
		sign     string
		digits   string
		exponent int64
	}
	referenceString []uint16 // UTF-16 code units, so that lone surrogates survive
	referenceArray  []any
	referenceObject []referenceMember
	referenceMember struct {
		name  referenceString
		value any
	}
)

// referenceSum is the digest as docs/token.md defines it, written for clarity. It shares no code with the package.
func referenceSum(text []byte) (digest [32]byte, ok bool) {
	if len(text) > referenceMaxText || !utf8.Valid(text) {
		return digest, false
	}
	if len(text) == 0 {
		text = []byte("{}")
	}
	p := referenceParser{rest: string(text)}
	value, ok := p.value(0)
	p.skipSpace()
	if !ok || p.rest != "" {
		return digest, false
	}
	if value == nil {
		value = referenceObject{}
	}
	return sha256.Sum256(referenceStream(nil, value)), true
}

// referenceParser is a recursive descent parser. The field rest is the text that it has not read
// yet. Its methods return false if the text does not continue with what they should read, or if
// what they read is not allowed.
type referenceParser struct {
	rest string
}

func (p *referenceParser) skipSpace() {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
}

// take skips white space. If the token comes next, take moves past it and returns true.
func (p *referenceParser) take(token string) bool {
	p.skipSpace()
	rest, found := strings.CutPrefix(p.rest, token)
	p.rest = rest
	return found
}

// value reads any value; depth is the number of arrays and objects around it.
func (p *referenceParser) value(depth int) (any, bool) {
	switch {
	case p.take("null"):
		return nil, true
	case p.take("false"):
		return false, true
	case p.take("true"):
		return true, true
	case p.take(`"`):
		return p.stringTail()
	case p.take("["):
		return p.arrayTail(depth + 1)
	case p.take("{"):
		return p.objectTail(depth + 1)
	}
	return p.number()
}

// arrayTail reads an array after its bracket; depth counts the array itself.
func (p *referenceParser) arrayTail(depth int) (any, bool) {
	array := referenceArray{}
	if depth > referenceMaxDepth {
		return nil, false
	}
	if p.take("]") {
		return array, true
	}
	for {
		element, ok := p.value(depth)
		if !ok {
			return nil, false
		}
		array = append(array, element)
		if p.take("]") {
			return array, true
		}
		if !p.take(",") {
			return nil, false
		}
	}
}

// objectTail reads an object after its brace; depth counts the object itself.
func (p *referenceParser) objectTail(depth int) (any, bool) {
	object := referenceObject{}
	seen := map[string]bool{}
	if depth > referenceMaxDepth {
		return nil, false
	}
	if p.take("}") {
		return object, true
	}
	for {
		if !p.take(`"`) {
			return nil, false
		}
		name, ok := p.stringTail()
		if !ok || !utf8.ValidString(name.utf8()) || seen[name.utf8()] || !p.take(":") {
			return nil, false
		}
		seen[name.utf8()] = true
		value, ok := p.value(depth)
		if !ok {
			return nil, false
		}
		object = append(object, referenceMember{name, value})
		if p.take("}") {
			return object, true
		}
		if !p.take(",") {
			return nil, false
		}
	}
}

var referenceEscapes = map[rune]uint16{
	'"': '"', '\\': '\\', '/': '/',
	'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// stringTail reads a string after its opening quote.
func (p *referenceParser) stringTail() (referenceString, bool) {
	units := referenceString{}
	for p.rest != "" {
		r := p.nextRune()
		switch {
		case r == '"':
			return units, true
		case r < ' ':
			return nil, false
		case r != '\\':
			units = utf16.AppendRune(units, r)
		default:
			unit, ok := p.escapeTail()
			if !ok {
				return nil, false
			}
			// Surrogates are not paired here. The method utf8 pairs them.
			units = append(units, unit)
		}
	}
	return nil, false
}

// escapeTail reads an escape after its backslash.
func (p *referenceParser) escapeTail() (uint16, bool) {
	letter := p.nextRune()
	if letter != 'u' {
		unit, ok := referenceEscapes[letter]
		return unit, ok
	}
	if len(p.rest) < 4 {
		return 0, false
	}
	// In base 16, ParseUint accepts only hexadecimal digits.
	unit, err := strconv.ParseUint(p.rest[:4], 16, 16)
	if err != nil {
		return 0, false
	}
	p.rest = p.rest[4:]
	return uint16(unit), true
}

// nextRune reads one rune. At the end of the text it returns utf8.RuneError, which no caller accepts
// there.
func (p *referenceParser) nextRune() rune {
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r
}

// The groups are: sign, whole part, fraction, exponent.
var referenceNumberGrammar = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

func (p *referenceParser) number() (any, bool) {
	// The number ends where these characters end, because none of them may follow a number.
	rest := strings.TrimLeft(p.rest, "+-.0123456789eE")
	token := strings.TrimSuffix(p.rest, rest)
	p.rest = rest
	groups := referenceNumberGrammar.FindStringSubmatch(token)
	if groups == nil {
		return nil, false
	}
	sign, whole, fraction, written := groups[1], groups[2], groups[3], groups[4]
	if sign == "" {
		sign = "+"
	}
	if strings.ContainsAny(token, ".eE") && len(token) > 800 {
		return nil, false
	}
	// The limit is for the exponent as it is written: leading zeros count, the sign does not.
	if len(strings.TrimLeft(written, "+-")) > 18 {
		return nil, false
	}
	exponent := int64(0)
	if written != "" {
		var err error
		if exponent, err = strconv.ParseInt(written, 10, 64); err != nil {
			panic(err) // 18 digits always fit
		}
	}
	all := whole + fraction
	digits := strings.TrimRight(all, "0")
	exponent += int64(len(all) - len(digits) - len(fraction))
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		exponent = 0
	}
	return referenceNumber{sign, digits, exponent}, true
}

// utf8 returns what docs/token.md calls units: UTF-8, in which a lone surrogate takes three bytes.
func (s referenceString) utf8() string {
	var out []byte
	for i := 0; i < len(s); i++ {
		r := rune(s[i])
		if !utf16.IsSurrogate(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		if i+1 < len(s) {
			// DecodeRune gives U+FFFD for two units that are no pair.
			if pair := utf16.DecodeRune(r, rune(s[i+1])); pair != utf8.RuneError {
				out = utf8.AppendRune(out, pair)
				i++
				continue
			}
		}
		// A lone surrogate is encoded by hand, because utf8.AppendRune would replace it.
		out = append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	}
	return string(out)
}

func referenceFrame(out []byte, x string) []byte {
	return append(binary.BigEndian.AppendUint32(out, uint32(len(x))), x...)
}

// referenceStream appends the stream of a value.
func referenceStream(out []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(out, "z"...)
	case bool:
		if v {
			return append(out, "t"...)
		}
		return append(out, "f"...)
	case referenceNumber:
		out = append(out, "n"+v.sign...)
		out = referenceFrame(out, v.digits)
		return binary.BigEndian.AppendUint64(out, uint64(v.exponent))
	case referenceString:
		return referenceFrame(append(out, "s"...), v.utf8())
	case referenceArray:
		out = append(out, "a"...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(v)))
		for _, element := range v {
			out = referenceStream(out, element)
		}
		return out
	case referenceObject:
		if referenceAlike(v) {
			out = append(out, "O"...)
		} else {
			// Go compares strings by their bytes, which is the order that docs/token.md demands.
			slices.SortFunc(v, func(a, b referenceMember) int {
				return strings.Compare(a.name.utf8(), b.name.utf8())
			})
			out = append(out, "o"...)
		}
		out = binary.BigEndian.AppendUint32(out, uint32(len(v)))
		for _, member := range v {
			out = referenceFrame(out, member.name.utf8())
			out = referenceStream(out, member.value)
		}
		return out
	}
	panic("not a value")
}

// referenceAlike reports whether the object has two names that differ only in upper and lower case,
// or that are the same number.
func referenceAlike(object referenceObject) bool {
	seen, numbers, every := map[string]bool{}, 0, false
	for _, member := range object {
		name := member.name.utf8()
		keys := []string{strings.Map(func(r rune) rune {
			folded := r
			for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
				folded = max(folded, other)
			}
			return folded
		}, name)}
		switch number, kind := referenceNumberName(name); kind {
		case "every number":
			numbers, every = numbers+1, true
		case "one number":
			numbers++
			keys = append(keys, fmt.Sprint("float32 ", number.float32), fmt.Sprint("float64 ", number.float64))
		}
		for _, key := range keys {
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return every && numbers > 1
}

var (
	referenceNumberStart = regexp.MustCompile(`^(?i)[+-]?[0-9.in]`)
	referenceEveryNumber = regexp.MustCompile(`^(?i)([+-]?(inf|infinity|nan)|[+-]?0x[0-9a-fxp.+-]*p[0-9a-fxp.+-]*|[0-9.e+-]{33,})$`)
	// The groups are: sign, whole part, fraction, exponent.
	referenceDecimalName = regexp.MustCompile(`^(?i)([+-]?)([0-9]*)(?:\.([0-9]*))?(?:e([+-]?[0-9]+))?$`)
)

type referenceFloats struct {
	float32 float32
	float64 float64
}

// referenceNumberName reads a name as a number. It returns the kind of the name: "every number", "one number", or "".
func referenceNumberName(name string) (_ referenceFloats, kind string) {
	text := strings.ReplaceAll(name, "_", "")
	switch {
	case !referenceNumberStart.MatchString(name):
		return referenceFloats{}, ""
	case strings.EqualFold(text, "null"):
		return referenceFloats{}, "one number"
	case referenceEveryNumber.MatchString(text):
		return referenceFloats{}, "every number"
	}
	groups := referenceDecimalName.FindStringSubmatch(text)
	if groups == nil || groups[2]+groups[3] == "" {
		return referenceFloats{}, ""
	}
	digits := strings.TrimLeft(groups[2]+groups[3], "0")
	exponent, _ := new(big.Int).SetString(cmp.Or(groups[4], "0"), 10)
	exponent.Sub(exponent, big.NewInt(int64(len(groups[3]))))
	magnitude := new(big.Int).Add(exponent, big.NewInt(int64(len(digits)-1)))
	switch {
	case digits == "" || magnitude.Cmp(big.NewInt(-38)) < 0:
		return referenceFloats{}, "one number"
	case magnitude.Cmp(big.NewInt(38)) >= 0:
		sign := 1
		if groups[1] == "-" {
			sign = -1
		}
		return referenceFloats{float32(math.Inf(sign)), math.Inf(sign)}, "one number"
	}
	exact, _ := new(big.Rat).SetString(groups[1] + digits + "e" + exponent.String())
	var floats referenceFloats
	floats.float32, _ = exact.Float32()
	floats.float64, _ = exact.Float64()
	return floats, "one number"
}
