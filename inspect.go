package mcpseal

import (
	"time"

	"github.com/mcpseal/mcpseal/internal/inspect"
)

func init() { inspect.ReadState = inspectState }

// inspectState is for the command alone.
func inspectState(payload []byte) (inspect.State, error) {
	rec, err := parseRecord(payload)
	if err != nil {
		return inspect.State{}, err
	}
	c, questions, err := rec.claims()
	if err != nil {
		return inspect.State{}, err
	}
	s := inspect.State{
		Issued: c.Issued, Expires: c.Expires, FlowStart: c.FlowStart, Flow: c.Flow, Round: c.Round,
		Audience: rec.audience != nil, Principal: rec.principal != nil,
		State: c.State, HasState: c.HasState,
	}
	for q := range questions.all {
		s.Questions = append(s.Questions, inspect.Question{Key: q.Key, Kind: uint8(q.Kind), Worded: q.Digest != [digestSize]byte{}})
	}
	s.Limits = func(at time.Time, maxFlow time.Duration, maxRounds int) string {
		return string(timeReason(at.UnixMilli(), &c, true, maxFlow, maxRounds))
	}
	return s, nil
}
