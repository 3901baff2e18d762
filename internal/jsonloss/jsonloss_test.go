package jsonloss_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal/internal/jsonloss"
)

type secret struct{ id int }

type half struct {
	ID   int
	user string
}

type Named struct{ Name string }

type Other struct{ Name string }

type unexported struct{ Seen int }

// cached has its own JSON methods. They write only the field called id.
type cached struct {
	id    int
	cache []string
}

func (c cached) MarshalJSON() ([]byte, error)     { return json.Marshal(c.id) }
func (c *cached) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &c.id) }

// oneWay writes JSON that cannot be read into it.
type oneWay struct{ X int }

func (oneWay) MarshalJSON() ([]byte, error) { return []byte(`{"x":"text"}`), nil }

// onPointer has its JSON methods on the pointer type, so a copy of a value is written without them.
type onPointer struct{ id, X int }

func (o *onPointer) MarshalJSON() ([]byte, error)    { return json.Marshal(o.id) }
func (o *onPointer) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &o.id) }

type color int

func (c color) MarshalText() ([]byte, error) { return []byte("red"), nil }
func (c *color) UnmarshalText(text []byte) error {
	if string(text) != "red" {
		return errors.New("not a color")
	}
	*c = 1
	return nil
}

type never struct{ X int }

func (never) IsZero() bool { return true }

type tree struct {
	Name string
	Kids []*tree
}

type AnyLeft struct{ V any }

type AnyRight struct{ V any }

// lower is a type for keys of maps. A key is written as it is, and read in lower case.
type lower string

func (l lower) MarshalText() ([]byte, error) { return []byte(l), nil }
func (l *lower) UnmarshalText(text []byte) error {
	*l = lower(strings.ToLower(string(text)))
	return nil
}

func of(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%T: %v", value, err)
	}
	return jsonloss.Of(reflect.ValueOf(value), text)
}

// TestAPointersMethodsCountWhereTheyAreCalled checks values that were written through a pointer.
// For such a value, encoding/json calls the methods of the pointer type. So jsonloss.Of must take
// these methods into account.
func TestAPointersMethodsCountWhereTheyAreCalled(t *testing.T) {
	for _, pointer := range []any{&onPointer{7, 0}, big.NewInt(7), &struct{ K onPointer }{onPointer{7, 0}}, &[1]onPointer{{7, 0}}, new(onPointer), &onPointer{0, 5}} {
		text, _ := json.Marshal(pointer)
		if problem := jsonloss.Of(reflect.ValueOf(pointer).Elem(), text); problem != "" {
			t.Errorf("%s: %s", text, problem)
		}
	}
	lost := &struct {
		K onPointer `json:"-"`
	}{onPointer{7, 0}}
	text, _ := json.Marshal(lost)
	if problem := jsonloss.Of(reflect.ValueOf(lost).Elem(), text); problem == "" {
		t.Errorf("%s passes", text)
	}
}

func TestWhatIsLostOfAnAnyIsFound(t *testing.T) {
	twoTags := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[any](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[any](), Tag: `json:"x"`},
	})).Elem()
	twoTags.Field(0).Set(reflect.ValueOf("approved"))
	type two struct {
		AnyLeft
		AnyRight
	}
	for name, value := range map[string]any{
		"two embedded":            two{AnyLeft{"approved"}, AnyRight{"x"}},
		"two embedded, in an any": []any{two{AnyLeft{"approved"}, AnyRight{"x"}}},
		"two fields of one tag":   twoTags.Interface(),
		"an embedded any":         struct{ any }{"approved"},
		"hidden by a field": struct {
			AnyLeft
			V any
		}{AnyLeft{"approved"}, "x"},
		"hidden by a field that is nil": struct {
			AnyLeft
			V any
		}{AnyLeft{"approved"}, nil},
		"skipped": struct {
			A any `json:"-"`
		}{"approved"},
		"omitted": struct {
			A interface{ IsZero() bool } `json:",omitzero"`
		}{never{7}},
	} {
		if problem := of(t, value); problem == "" {
			t.Errorf("%s: %+v passes", name, value)
		}
	}
	for _, value := range []any{
		struct{ A any }{json.RawMessage("null")}, struct{ A any }{json.RawMessage(nil)}, struct{ A any }{(*int)(nil)}, struct{ A any }{""}, struct{ A any }{map[string]any(nil)},
		struct {
			A any `json:",omitempty"`
		}{0}, two{},
	} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%+v: %s", value, problem)
		}
	}
}

func TestWhatIsLostOfAMapIsFound(t *testing.T) {
	now := time.Now()
	for name, value := range map[string]any{
		"keys that become one":            map[lower]int{"A": 1, "a": 2},
		"a key that becomes another":      map[lower]int{"A": 1},
		"keys that are written alike":     map[color]int{0: 1, 1: 2},
		"and in an any":                   []any{map[color]int{0: 1, 1: 2}},
		"a member under a key of its own": map[time.Time]half{now: {1, "alice"}},
	} {
		if problem := of(t, value); problem == "" || strings.Contains(problem, "alice") {
			t.Errorf("%s: %+v: %q", name, value, problem)
		}
	}
	for _, value := range []any{map[lower]int{"a": 1}, map[time.Time]int{now: 1}, map[int]any{1: "a"}, []any{map[int]any{1: "a"}, map[lower]int{"A": 1}, map[time.Time]int{now: 1}}} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%+v: %s", value, problem)
		}
	}
}

// TestATimeThatComesBackAsAnotherIsFound tries a time zone whose offset has seconds. JSON cannot
// hold these, so the time would come back as another instant.
func TestATimeThatComesBackAsAnotherIsFound(t *testing.T) {
	local := time.Date(1900, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 19*60+32))
	for name, value := range map[string]any{
		"alone":               local,
		"a pointer":           &local,
		"a list":              []time.Time{local},
		"an array":            [1]time.Time{local},
		"a map":               map[string]time.Time{"a": local},
		"a key":               map[time.Time]int{local: 1},
		"a key in an any":     []any{map[time.Time]int{local: 1}},
		"a field":             struct{ At time.Time }{local},
		"an embedded struct":  struct{ Moment }{Moment{local}},
		"a hidden embedded":   struct{ moment }{moment{local}},
		"an any":              map[string]any{"at": local},
		"a pointer in an any": []any{&local},
		"a struct in an any":  []any{struct{ At *time.Time }{&local}},
	} {
		if problem := of(t, value); !strings.Contains(problem, "another value") || strings.Contains(problem, "1900") {
			t.Errorf("%s: %q", name, problem)
		}
	}
	whole := local.In(time.FixedZone("", 20*60))
	for _, value := range []any{whole, local.UTC(), []any{whole, &whole, local.UTC()}, map[time.Time]any{whole: whole}, struct{ At *time.Time }{&whole}, struct{ moment }{moment{whole}}} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%v: %s", value, problem)
		}
	}
}

type (
	Moment struct{ At time.Time }
	moment struct{ At time.Time }
)

type (
	timed struct {
		time.Time
		Owner string
	}
	addressed struct {
		netip.Addr
		Port int
	}
	deeper struct {
		timed
		Level int
	}
	whole struct { // its own JSON methods write Owner too
		time.Time
		Owner string
		cache int
	}
)

func (w whole) MarshalJSON() ([]byte, error) { return json.Marshal([]any{w.Time, w.Owner}) }
func (w *whole) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&w.Time, &w.Owner})
}

// Limits is a type that other structs embed.
type Limits struct {
	Tenant string
	Max    int
}

// TestWhatIsBesideAnEmbeddedTypeIsNotLost tries structs that embed a type with JSON methods. Such a
// struct inherits these methods, and they write none of its other fields. The package must report
// this loss.
func TestWhatIsBesideAnEmbeddedTypeIsNotLost(t *testing.T) {
	now := time.Now()
	for name, value := range map[string]any{
		"a time":     timed{now, "alice"},
		"a pointer":  &timed{now, "alice"},
		"a list":     []timed{{now, "alice"}},
		"a field":    struct{ A *timed }{&timed{now, "alice"}},
		"an any":     map[string]any{"a": timed{now, "alice"}},
		"an address": addressed{netip.MustParseAddr("::1"), 7},
		"deeper":     deeper{timed{now, ""}, 7},

		"another embedded one": struct {
			time.Time
			Limits
		}{now, Limits{"acme", 10}},
		"raw JSON and another": struct {
			json.RawMessage
			Limits
		}{json.RawMessage("1"), Limits{"acme", 10}},
		"an unexported field": struct {
			time.Time
			approved bool
		}{now, true},
		"a field that is left out": struct {
			time.Time
			Max int `json:"-"`
		}{now, 7},
		"only two levels down": deeper{timed{now, "alice"}, 0},
		"a field of that": struct{ A any }{struct {
			time.Time
			Limits
		}{now, Limits{"acme", 10}}},
		"a map of that": map[string]struct {
			time.Time
			Limits
		}{"a": {now, Limits{"acme", 10}}},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if jsonloss.Of(reflect.ValueOf(value), text) == "" {
			t.Errorf("%s: nothing is lost in %s", name, text)
		}
	}
	for name, value := range map[string]any{
		"nothing in the others": struct {
			time.Time
			Limits
			approved bool
		}{Time: now}, "two levels": deeper{timed{now, ""}, 0},
		"nothing beside": timed{now, ""}, "no more than the type": struct{ time.Time }{now}, "its own JSON": whole{now, "alice", 7}, "zero": timed{},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if problem := jsonloss.Of(reflect.ValueOf(value), text); problem != "" {
			t.Errorf("%s: %s in %s", name, problem, text)
		}
	}
}

func TestWhatIsLostInJSONIsFound(t *testing.T) {
	id, none := 7, (*int)(nil)
	twoTags := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
	})).Elem()
	twoTags.Field(0).SetInt(1)
	oddTag := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a\"b"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"A"`},
	})).Elem()
	oddTag.Field(0).SetInt(1)
	if text, _ := json.Marshal(oddTag.Interface()); strings.Contains(string(text), "1") {
		oddTag = reflect.ValueOf(secret{1}) // with GOEXPERIMENT=jsonv2, encoding/json finds a name in the tag
	}
	for name, value := range map[string]any{
		"unexported":                secret{1},
		"unexported, in a pointer":  &secret{1},
		"unexported, in a slice":    []secret{{1}},
		"unexported, in an array":   [1]*secret{{1}},
		"unexported, in a map":      map[string]secret{"a": {1}},
		"unexported, in a struct":   struct{ A struct{ B *secret } }{struct{ B *secret }{&secret{1}}},
		"unexported, in an any":     map[string]any{"a": []any{secret{1}}},
		"half":                      half{1, "alice"},
		"half, in a slice":          []*half{{1, "alice"}},
		"half, in an any":           struct{ A any }{half{1, "alice"}},
		"a time that is unexported": struct{ at time.Time }{time.Now()},
		"skipped": struct {
			A int `json:"-"`
		}{1},
		"a time that is skipped": struct {
			A time.Time `json:"-"`
		}{time.Now()},
		"two fields of one tag": twoTags.Interface(),
		"a field of an odd tag": oddTag.Interface(),
		"two embedded": struct {
			Named
			Other
		}{Named{"a"}, Other{"b"}},
		"hidden by a field": struct {
			Named
			Name string
		}{Named{"a"}, "b"},
		"an embedded pointer that cannot be set": struct{ *unexported }{&unexported{1}},
		"omitted": struct {
			A never `json:"a,omitzero"`
		}{never{1}},
		"no number":               struct{ N json.Number }{},
		"no number, in a list":    []json.Number{""},
		"bytes in an any":         map[string]any{"a": []byte("x")},
		"bytes in a list of any":  []any{[]byte("x")},
		"text":                    "\xff",
		"text, deep":              map[string][]struct{ A string }{"a": {{"\xff"}}},
		"text in an any":          []any{"\xff"},
		"a key":                   map[string]int{"\xff": 1},
		"keys that become one":    map[string]int{"\xff": 1, "\xfe": 2},
		"a key in an any":         []any{map[string]int{"\xff": 1}},
		"written in one way only": oneWay{1},
		"written without methods": onPointer{0, 5},
		"a number that is copied": *big.NewInt(7),
		"a pointer to a pointer":  struct{ A **secret }{func() **secret { p := &secret{1}; return &p }()},
		"an interface":            struct{ E interface{ IsZero() bool } }{never{1}},
	} {
		if problem := of(t, value); problem == "" {
			t.Errorf("%s: %+v passes", name, value)
		}
	}
	for _, value := range []any{&id, &none} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%T: %s", value, problem)
		}
	}
	if problem := of(t, struct{ A []struct{ B half } }{[]struct{ B half }{{half{1, "alice"}}}}); !strings.HasPrefix(problem, ".A[0].B.user is not carried") || strings.Contains(problem, "alice") {
		t.Errorf("%s", problem)
	}
}

// TestWhatJSONCarriesPasses tries values of common types. jsonloss.Of must find no loss in them.
func TestWhatJSONCarriesPasses(t *testing.T) {
	now := time.Now()
	address := netip.MustParseAddr("::1")
	zero := new(big.Int).Sub(big.NewInt(1), big.NewInt(1))
	var nilSlice []int
	for _, value := range []any{
		nil, 1, int64(1) << 60, 1.5, "x", "\ufffd", true, []byte("x"), []int{}, nilSlice, &nilSlice, map[string]int{}, map[string]int(nil), struct{}{}, [0]int{},
		now, now.Round(0), now.UTC(), time.Time{}, time.Time{}.In(time.FixedZone("", 0)), time.Hour, &now, []time.Time{now}, map[string]time.Time{"a": now},
		map[int]string{-1: "a"}, map[netip.Addr]int{address: 1}, address, netip.Addr{}, &address, zero, big.NewInt(1 << 40), big.NewRat(1, 3), []big.Int{*zero}, url.URL{Host: "x"},
		json.RawMessage(` { "a" : [ 1 , "\ufffd" ] } `), map[string]json.RawMessage{"a": json.RawMessage(` 1`)}, json.RawMessage(nil), json.Number("1.50"),
		struct {
			At  time.Time
			Raw json.RawMessage
			P   *int
			Opt string         `json:",omitempty"`
			L   []int          `json:"l,omitempty"`
			M   map[string]int `json:"m,omitempty"`
			Z   time.Time      `json:"z,omitzero"`
			Q   int64          `json:"q,string"`
			F   float32
			hid int
			Not string `json:"-"`
		}{At: now, Raw: json.RawMessage(`{ }`), L: []int{}, M: map[string]int{}, Q: 1 << 60, F: 0.1},
		struct {
			Named
			Age int
		}{Named{"a"}, 1},
		struct{ *Named }{&Named{"a"}}, struct{ *Named }{}, struct{ unexported }{unexported{1}}, struct{ Named Named }{Named{"a"}},
		secret{}, half{ID: 1}, []*half{{ID: 1}, nil}, cached{1, []string{"x"}}, &cached{0, []string{"x"}}, struct{ C *cached }{&cached{0, []string{"x"}}}, &onPointer{1, 0}, color(1), []color{1},
		tree{"a", []*tree{{"b", nil}, {"c", []*tree{{}}}}}, &tree{},
		map[string]any{"i": 1, "u": uint8(1), "f": 1.5, "s": "x", "b": true, "n": nil, "l": []string{"a"}, "m": map[string]int{"a": 1}, "t": now, "p": &now, "e": []byte{}, "np": (*int)(nil)},
		[]any{struct{ A int }{1}, &tree{"a", nil}, json.RawMessage(`{ }`), json.Number("1"), []any{[]any{}}}, struct{ A any }{}, struct{ A any }{now},
	} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%T %+v: %s", value, value, problem)
		}
	}
}

// TestANumberThatAFloat64ChangesIsRefusedInAnAny tries numbers that no float64 can hold exactly.
// encoding/json decodes every number in an any into a float64, whatever type it had before.
func TestANumberThatAFloat64ChangesIsRefusedInAnAny(t *testing.T) {
	const odd = 1<<53 + 1
	large := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 70), big.NewInt(1))
	var typed any = int64(odd)
	for name, value := range map[string]any{
		"an integer":                   map[string]any{"id": int64(odd)},
		"a negative one":               []any{int64(-odd)},
		"the largest":                  []any{int64(math.MaxInt64)},
		"an unsigned one":              []any{uint64(1<<63 + 1)},
		"the largest unsigned one":     []any{uint64(math.MaxUint64)},
		"of a type of its own":         struct{ A any }{time.Duration(odd)},
		"in a typed map":               []any{map[string]int64{"id": odd}},
		"in a map with other keys":     []any{map[int]int64{1: odd}},
		"in a struct":                  struct{ A any }{struct{ ID int64 }{odd}},
		"in a list in a struct":        []any{&struct{ IDs []uint64 }{[]uint64{1, odd}}},
		"behind a pointer":             &typed,
		"a json.Number":                []any{json.Number("9007199254740993")},
		"a json.Number with an e":      []any{json.Number("9007199254740993e0")},
		"digits that a float drops":    []any{json.Number("0.1000000000000000000001")},
		"a json.Number out of range":   []any{json.Number("1e999")},
		"a json.Number next to zero":   []any{json.Number("1e-999999999")},
		"raw JSON":                     []any{json.RawMessage(`{"id":[9007199254740993]}`)},
		"a number with its own JSON":   []any{large},
		"in an any within a typed map": map[string]struct{ A any }{"a": {int64(odd)}},
	} {
		if problem := of(t, value); problem == "" || strings.Contains(problem, "900719") {
			t.Errorf("%s: %q", name, problem)
		}
	}
	for name, value := range map[string]any{
		"exact":        []any{int64(odd - 1), int64(1) << 60, int64(math.MinInt64), uint64(1) << 63, -1, uint8(7), time.Hour},
		"floats":       []any{0.1, math.Copysign(0, -1), math.Pi, math.MaxFloat64, math.SmallestNonzeroFloat64, float32(0.1), 1e21, 123456789012345680000.0},
		"json.Number":  []any{json.Number("1.50"), json.Number("1E3"), json.Number("0.1"), json.Number("1152921504606846976"), json.Number("1.7976931348623157e308")},
		"raw JSON":     []any{json.RawMessage(`{"id":[1, 0.30000000000000004]}`)},
		"its own JSON": []any{big.NewInt(1 << 60)},
		"text":         []any{"9007199254740993", map[int64]string{odd: "x"}},
		"in a field":   struct{ ID int64 }{odd},
		"in a map":     map[string]int64{"id": odd},
		"a string by a tag": []any{struct {
			ID int64 `json:",string"`
		}{odd}},
		"raw JSON in a field":   struct{ A json.RawMessage }{json.RawMessage(`9007199254740993`)},
		"a json.Number's field": struct{ A json.Number }{"9007199254740993"},
	} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if problem := of(t, struct{ A map[string]any }{map[string]any{"x": []any{1, int64(odd)}}}); !strings.HasPrefix(problem, ".A[…][1] holds a number") {
		t.Errorf("%s", problem)
	}
}

type (
	redacted      string
	redactedBytes []string
	redactedMap   map[string]string
	redactedFlag  bool
	lowHigh       int
	behind        int // its method has a pointer receiver
	faithful      string
	nothing       int
)

func (redacted) MarshalJSON() ([]byte, error)      { return []byte(`"[redacted]"`), nil }
func (redactedBytes) MarshalJSON() ([]byte, error) { return []byte(`["[redacted]"]`), nil }
func (redactedMap) MarshalText() ([]byte, error)   { return []byte("[redacted]"), nil }
func (redactedFlag) MarshalJSON() ([]byte, error)  { return []byte(`false`), nil }
func (lowHigh) MarshalText() ([]byte, error)       { return []byte("low"), nil }
func (*behind) MarshalText() ([]byte, error)       { return []byte("low"), nil }
func (nothing) MarshalJSON() ([]byte, error)       { return []byte("null"), nil }
func (f faithful) MarshalText() ([]byte, error)    { return []byte(f), nil }

// TestATypeThatOnlyWritesItselfIsRefusedInAnAnyAsInAField tries types that have a method to write
// themselves, but none to read themselves. What they write would come back as another value.
func TestATypeThatOnlyWritesItselfIsRefusedInAnAnyAsInAField(t *testing.T) {
	low := behind(3)
	for name, values := range map[string][2]any{ // each value twice: in a field or element of its own type, then in an any
		"a string":         {struct{ A redacted }{"x"}, struct{ A any }{redacted("x")}},
		"a list":           {struct{ A redactedBytes }{redactedBytes{"x"}}, struct{ A any }{redactedBytes{"x"}}},
		"a map":            {struct{ A redactedMap }{redactedMap{"x": "y"}}, map[string]any{"a": redactedMap{"x": "y"}}},
		"a bool":           {struct{ A redactedFlag }{true}, []any{redactedFlag(true)}},
		"an integer":       {struct{ A lowHigh }{3}, map[string]any{"a": lowHigh(3)}},
		"a pointer to one": {struct{ A *lowHigh }{new(lowHigh)}, []any{new(lowHigh)}},
		"a pointer's own":  {struct{ A *behind }{&low}, []any{&low}},
		"one that is null": {struct{ A nothing }{3}, struct{ A any }{nothing(3)}},
		"in a list":        {[]redacted{"x"}, []any{[]redacted{"x"}}},
		"in a map":         {map[string]lowHigh{"a": 3}, []any{map[string]lowHigh{"a": 3}}},
		"in a list's any":  {[]lowHigh{3}, []any{[]any{lowHigh(3)}}},
		"an interface":     {[]redacted{"x"}, []any{[]json.Marshaler{redacted("x")}}},
	} {
		for i, place := range []string{"a field", "an any"} {
			if problem := of(t, values[i]); problem == "" || strings.Contains(problem, "redacted]") {
				t.Errorf("%s in %s: %q", name, place, problem)
			}
		}
	}
	for _, value := range []any{[]any{faithful("x"), []faithful{"x"}}, []any{redacted("[redacted]")}, []any{behind(3)}, []any{(*lowHigh)(nil)}, struct{ any }{(*lowHigh)(nil)}, struct{ any }{map[int]int(nil)}, []any{[]encoding.TextMarshaler{faithful("x"), nil}}} {
		if problem := of(t, value); problem != "" {
			t.Errorf("%#v: %s", value, problem)
		}
	}
}
