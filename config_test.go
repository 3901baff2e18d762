package tripseal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

func TestConfigErrorsTeach(t *testing.T) {
	ring := newRing(t, newKey(t))
	native := tripseal.NativeFormat(ring)
	own := func(prefix string) tripseal.Format { return tripseal.RecordFormat(prefix, spacedCodec{}) }
	var noRing *tripseal.Ring
	for name, c := range map[string]struct {
		config tripseal.Config
		want   string
	}{
		"no keys":                     {tripseal.Config{Audience: "a"}, "tripseal.Ephemeral()"},
		"a nil ring":                  {tripseal.Config{Keys: noRing, Audience: "a"}, "keys.OpenFile("},
		"an empty ring":               {tripseal.Config{Keys: &tripseal.Ring{}, Audience: "a"}, "Config.Keys is missing"},
		"a nil ring and a format":     {tripseal.Config{Keys: noRing, Format: own("own1."), Audience: "a"}, "both Keys and Format"},
		"a nil codec":                 {tripseal.Config{Format: tripseal.RecordFormat("own1.", nil), Audience: "a"}, "codec of the format \"own1.\" is nil"},
		"no keys for a format":        {tripseal.Config{Format: tripseal.NativeFormat(nil), Audience: "a"}, "has no ring"},
		"a nil ring in a format":      {tripseal.Config{Format: tripseal.NativeFormat(noRing), Audience: "a"}, "has no ring"},
		"a typed nil format":          {tripseal.Config{Format: (*brokenFormat)(nil), Audience: "a"}, "cannot be used"},
		"a ring under another prefix": {tripseal.Config{Format: tripseal.RecordFormat("own1.", tripseal.RingCodec(ring, tripseal.PurposeState)), Audience: "a"}, "use NativeFormat"},
		"cursor keys for states":      {tripseal.Config{Format: tripseal.RecordFormat("ms1.", tripseal.RingCodec(ring, tripseal.PurposeCursor)), Audience: "a"}, "use NativeFormat"},
		"an unknown purpose":          {tripseal.Config{Format: tripseal.RecordFormat("ms1.", tripseal.RingCodec(ring, 99)), Audience: "a"}, "use NativeFormat"},
		"keys and format":             {tripseal.Config{Keys: ring, Format: native, Audience: "a"}, "both Keys and Format"},
		"no audience":                 {tripseal.Config{Keys: ring}, "Config.Audience is missing"},
		"format, no audience":         {tripseal.Config{Format: native}, "Config.Audience is missing"},
		"long audience":               {tripseal.Config{Keys: ring, Audience: strings.Repeat("a", 1025)}, "1025 bytes"},
		"a source without a ring":     {tripseal.Config{Keys: sourceFunc(func() *tripseal.Ring { return nil }), Audience: "a"}, "has no ring"},
		"a source that panics":        {tripseal.Config{Keys: sourceFunc(func() *tripseal.Ring { panic("x") }), Audience: "a"}, "has no ring"},
		"TTL without a unit":          {tripseal.Config{Keys: ring, Audience: "a", TTL: 600}, "not between"},
		"negative TTL":                {tripseal.Config{Keys: ring, Audience: "a", TTL: -1}, "Config.TTL"},
		"endless TTL":                 {tripseal.Config{Keys: ring, Audience: "a", TTL: 1 << 62}, "Config.TTL"},
		"tiny TTL":                    {tripseal.Config{Keys: ring, Audience: "a", TTL: time.Microsecond}, "Config.TTL"},
		"negative URLTTL":             {tripseal.Config{Keys: ring, Audience: "a", URLTTL: -time.Hour}, "Config.URLTTL"},
		"negative flow":               {tripseal.Config{Keys: ring, Audience: "a", MaxFlow: -2}, "Config.MaxFlow"},
		"negative rounds":             {tripseal.Config{Keys: ring, Audience: "a", MaxRounds: -2}, "Config.MaxRounds"},
		"too many rounds":             {tripseal.Config{Keys: ring, Audience: "a", MaxRounds: 65536}, "Config.MaxRounds"},
		"negative state":              {tripseal.Config{Keys: ring, Audience: "a", MaxState: -1}, "Config.MaxState"},
		"token below state":           {tripseal.Config{Keys: ring, Audience: "a", MaxState: 1000, MaxToken: 999}, "Config.MaxToken"},
		"huge state":                  {tripseal.Config{Keys: ring, Audience: "a", MaxState: 1 << 30}, "Config.MaxState"},
		"huge token":                  {tripseal.Config{Keys: ring, Audience: "a", MaxToken: 1 << 30}, "Config.MaxToken"},
		"tools without store":         {tripseal.Config{Keys: ring, Audience: "a", ReplayTools: []string{"x"}}, "Config.Replay is not"},
		"slow store":                  {tripseal.Config{Keys: ring, Audience: "a", ReplayTimeout: time.Hour}, "Config.ReplayTimeout"},
		"nil format":                  {tripseal.Config{Keys: ring, Audience: "a", AlsoOpen: []tripseal.Accepted{{}}}, "format 1 of Config.AlsoOpen is nil"},
		"the native prefix":           {tripseal.Config{Format: own("ms1."), Audience: "a"}, "taken by the native"},
		"the cursor prefix":           {tripseal.Config{Format: own("mc1."), Audience: "a"}, "taken by the native"},
		"the handle prefix":           {tripseal.Config{Format: own("mh1."), Audience: "a"}, "taken by the native"},
		"no full stop":                {tripseal.Config{Format: own("own1"), Audience: "a"}, "full stop"},
		"upper case":                  {tripseal.Config{Format: own("Own1."), Audience: "a"}, "lower-case"},
		"short prefix":                {tripseal.Config{Format: own("o."), Audience: "a"}, "2 to 16"},
		"stop inside":                 {tripseal.Config{Format: own("o.n."), Audience: "a"}, "lower-case"},
		"empty prefix":                {tripseal.Config{Format: own(""), Audience: "a"}, "full stop"},
		"one prefix twice":            {tripseal.Config{Keys: ring, Audience: "a", AlsoOpen: []tripseal.Accepted{{Format: native}}}, "two formats"},
		"one prefix twice (2)":        {tripseal.Config{Keys: ring, Audience: "a", AlsoOpen: []tripseal.Accepted{{Format: own("own1.")}, {Format: own("own1.")}}}, "two formats"},
		"idle waiver":                 {tripseal.Config{Format: own("own1."), Waive: tripseal.ClaimUser, Audience: "a"}, "carries user"},
		"unknown waiver":              {tripseal.Config{Keys: ring, Audience: "a", AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: 1 << 9}}}, "unknown claim"},
		"a format without claims": {tripseal.Config{Format: readable{}, Audience: "a"},
			"cannot carry request, arguments, audience, user, questions, flow"},
		"single use without a claim": {tripseal.Config{Format: readable{}, Audience: "a", Replay: storeFunc(nil), Waive: tripseal.ClaimRequest |
			tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser | tripseal.ClaimQuestions | tripseal.ClaimFlow}, "cannot carry single use"},
	} {
		boundary, err := tripseal.New(c.config)
		if err == nil || boundary != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// brokenFormat has a method Prefix that panics if the pointer is nil.
type brokenFormat struct{ prefix string }

func (f *brokenFormat) Prefix() string             { return f.prefix }
func (f *brokenFormat) Carries() tripseal.ClaimSet { return 0 }
func (f *brokenFormat) Digest(*tripseal.Binding) ([]byte, error) {
	return nil, nil
}
func (f *brokenFormat) Seal(context.Context, *tripseal.Binding, *tripseal.Claims) (string, error) {
	return "", nil
}
func (f *brokenFormat) Open(context.Context, *tripseal.Binding, string) (tripseal.Claims, error) {
	return tripseal.Claims{}, nil
}

func TestConfigIsCopied(t *testing.T) {
	tools := []string{"deploy"}
	used := storeFunc(func(context.Context, tripseal.Use) (bool, error) { return false, nil })
	s := newService(t, tripseal.Config{Replay: used, ReplayTools: tools})
	tools[0] = "other"
	s.reject(t, deploy(), s.first(t, deploy(), step), tripseal.ReasonReplayed)
}
