package mcpseal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
)

func TestConfigErrorsTeach(t *testing.T) {
	ring := newRing(t, newKey(t))
	native := mcpseal.NativeFormat(ring)
	own := func(prefix string) mcpseal.Format { return mcpseal.RecordFormat(prefix, spacedCodec{}) }
	var noRing *mcpseal.Ring
	for name, c := range map[string]struct {
		config mcpseal.Config
		want   string
	}{
		"no keys":                     {mcpseal.Config{Audience: "a"}, "mcpseal.Ephemeral()"},
		"a nil ring":                  {mcpseal.Config{Keys: noRing, Audience: "a"}, "keys.OpenFile("},
		"an empty ring":               {mcpseal.Config{Keys: &mcpseal.Ring{}, Audience: "a"}, "Config.Keys is missing"},
		"a nil ring and a format":     {mcpseal.Config{Keys: noRing, Format: own("own1."), Audience: "a"}, "both Keys and Format"},
		"a nil codec":                 {mcpseal.Config{Format: mcpseal.RecordFormat("own1.", nil), Audience: "a"}, "codec of the format \"own1.\" is nil"},
		"no keys for a format":        {mcpseal.Config{Format: mcpseal.NativeFormat(nil), Audience: "a"}, "has no ring"},
		"a nil ring in a format":      {mcpseal.Config{Format: mcpseal.NativeFormat(noRing), Audience: "a"}, "has no ring"},
		"a typed nil format":          {mcpseal.Config{Format: (*brokenFormat)(nil), Audience: "a"}, "cannot be used"},
		"a ring under another prefix": {mcpseal.Config{Format: mcpseal.RecordFormat("own1.", mcpseal.RingCodec(ring, mcpseal.PurposeState)), Audience: "a"}, "use NativeFormat"},
		"cursor keys for states":      {mcpseal.Config{Format: mcpseal.RecordFormat("ms1.", mcpseal.RingCodec(ring, mcpseal.PurposeCursor)), Audience: "a"}, "use NativeFormat"},
		"an unknown purpose":          {mcpseal.Config{Format: mcpseal.RecordFormat("ms1.", mcpseal.RingCodec(ring, 99)), Audience: "a"}, "use NativeFormat"},
		"keys and format":             {mcpseal.Config{Keys: ring, Format: native, Audience: "a"}, "both Keys and Format"},
		"no audience":                 {mcpseal.Config{Keys: ring}, "Config.Audience is missing"},
		"format, no audience":         {mcpseal.Config{Format: native}, "Config.Audience is missing"},
		"long audience":               {mcpseal.Config{Keys: ring, Audience: strings.Repeat("a", 1025)}, "1025 bytes"},
		"a source without a ring":     {mcpseal.Config{Keys: sourceFunc(func() *mcpseal.Ring { return nil }), Audience: "a"}, "has no ring"},
		"a source that panics":        {mcpseal.Config{Keys: sourceFunc(func() *mcpseal.Ring { panic("x") }), Audience: "a"}, "has no ring"},
		"TTL without a unit":          {mcpseal.Config{Keys: ring, Audience: "a", TTL: 600}, "was 600*time.Second meant?"},
		"negative TTL":                {mcpseal.Config{Keys: ring, Audience: "a", TTL: -1}, "Config.TTL"},
		"endless TTL":                 {mcpseal.Config{Keys: ring, Audience: "a", TTL: 1 << 62}, "Config.TTL"},
		"tiny TTL":                    {mcpseal.Config{Keys: ring, Audience: "a", TTL: time.Microsecond}, "Config.TTL"},
		"negative URLTTL":             {mcpseal.Config{Keys: ring, Audience: "a", URLTTL: -time.Hour}, "Config.URLTTL"},
		"negative flow":               {mcpseal.Config{Keys: ring, Audience: "a", MaxFlow: -2}, "Config.MaxFlow"},
		"negative rounds":             {mcpseal.Config{Keys: ring, Audience: "a", MaxRounds: -2}, "Config.MaxRounds"},
		"too many rounds":             {mcpseal.Config{Keys: ring, Audience: "a", MaxRounds: 65536}, "Config.MaxRounds"},
		"negative state":              {mcpseal.Config{Keys: ring, Audience: "a", MaxState: -1}, "Config.MaxState"},
		"token below state":           {mcpseal.Config{Keys: ring, Audience: "a", MaxState: 1000, MaxToken: 999}, "Config.MaxToken"},
		"huge state":                  {mcpseal.Config{Keys: ring, Audience: "a", MaxState: 1 << 30}, "Config.MaxState"},
		"huge token":                  {mcpseal.Config{Keys: ring, Audience: "a", MaxToken: 1 << 30}, "Config.MaxToken"},
		"tools without store":         {mcpseal.Config{Keys: ring, Audience: "a", ReplayTools: []string{"x"}}, "Config.Replay is not"},
		"slow store":                  {mcpseal.Config{Keys: ring, Audience: "a", ReplayTimeout: time.Hour}, "Config.ReplayTimeout"},
		"nil format":                  {mcpseal.Config{Keys: ring, Audience: "a", AlsoOpen: []mcpseal.Accepted{{}}}, "format 1 of Config.AlsoOpen is nil"},
		"the native prefix":           {mcpseal.Config{Format: own("ms1."), Audience: "a"}, "taken by the native"},
		"the cursor prefix":           {mcpseal.Config{Format: own("mc1."), Audience: "a"}, "taken by the native"},
		"no full stop":                {mcpseal.Config{Format: own("own1"), Audience: "a"}, "full stop"},
		"upper case":                  {mcpseal.Config{Format: own("Own1."), Audience: "a"}, "lower-case"},
		"short prefix":                {mcpseal.Config{Format: own("o."), Audience: "a"}, "2 to 16"},
		"stop inside":                 {mcpseal.Config{Format: own("o.n."), Audience: "a"}, "lower-case"},
		"empty prefix":                {mcpseal.Config{Format: own(""), Audience: "a"}, "full stop"},
		"one prefix twice":            {mcpseal.Config{Keys: ring, Audience: "a", AlsoOpen: []mcpseal.Accepted{{Format: native}}}, "two formats"},
		"one prefix twice (2)":        {mcpseal.Config{Keys: ring, Audience: "a", AlsoOpen: []mcpseal.Accepted{{Format: own("own1.")}, {Format: own("own1.")}}}, "two formats"},
		"idle waiver":                 {mcpseal.Config{Format: own("own1."), Waive: mcpseal.ClaimUser, Audience: "a"}, "carries user"},
		"unknown waiver":              {mcpseal.Config{Keys: ring, Audience: "a", AlsoOpen: []mcpseal.Accepted{{Format: readable{}, Waive: 1 << 9}}}, "unknown claim"},
		"a format without claims": {mcpseal.Config{Format: readable{}, Audience: "a"},
			"cannot carry request, arguments, audience, user, questions, flow"},
		"single use without a claim": {mcpseal.Config{Format: readable{}, Audience: "a", Replay: storeFunc(nil), Waive: mcpseal.ClaimRequest |
			mcpseal.ClaimArguments | mcpseal.ClaimAudience | mcpseal.ClaimUser | mcpseal.ClaimQuestions | mcpseal.ClaimFlow}, "cannot carry single use"},
	} {
		boundary, err := mcpseal.New(c.config)
		if err == nil || boundary != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// brokenFormat has a method Prefix that panics if the pointer is nil.
type brokenFormat struct{ prefix string }

func (f *brokenFormat) Prefix() string            { return f.prefix }
func (f *brokenFormat) Carries() mcpseal.ClaimSet { return 0 }
func (f *brokenFormat) Digest(*mcpseal.Binding) ([]byte, error) {
	return nil, nil
}
func (f *brokenFormat) Seal(context.Context, *mcpseal.Binding, *mcpseal.Claims) (string, error) {
	return "", nil
}
func (f *brokenFormat) Open(context.Context, *mcpseal.Binding, string) (mcpseal.Claims, error) {
	return mcpseal.Claims{}, nil
}

func TestConfigIsCopied(t *testing.T) {
	tools := []string{"deploy"}
	store := storeFunc(func(context.Context, mcpseal.Use) (bool, error) { return false, nil })
	s := newService(t, mcpseal.Config{Replay: store, ReplayTools: tools})
	tools[0] = "other"
	s.reject(t, deploy(), s.first(t, deploy(), step), mcpseal.ReasonReplayed)
}

func TestEphemeralKeysAreSaidOutLoud(t *testing.T) {
	book := &logbook{}
	if _, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Logger: jsonLogger(book)}); err != nil {
		t.Fatal(err)
	}
	if message, _ := book.last(t)["msg"].(string); !strings.Contains(message, "ephemeral") {
		t.Errorf("the log says %q", message)
	}
	a, b := newService(t, mcpseal.Config{Keys: mcpseal.Ephemeral()}), newService(t, mcpseal.Config{Keys: mcpseal.Ephemeral()})
	a.reject(t, deploy(), b.first(t, deploy(), step), mcpseal.ReasonUnknownKey)
}

func TestEphemeralKeysInAFormatAreSaidOutLoudToo(t *testing.T) {
	book := &logbook{}
	if _, err := mcpseal.New(mcpseal.Config{Format: mcpseal.NativeFormat(mcpseal.Ephemeral()), Audience: "a", Logger: jsonLogger(book)}); err != nil {
		t.Fatal(err)
	}
	if message, _ := book.last(t)["msg"].(string); !strings.Contains(message, "ephemeral") {
		t.Errorf("the log says %q", message)
	}
}
