package adapter

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpseal/mcpseal"
)

// Capabilities is what a client has declared that it can answer.
type Capabilities struct {
	Form, URL     bool // elicitation; a client that names no mode can answer forms
	Sampling      bool
	SamplingTools bool // sampling with tools
	Roots         bool
}

// Need is what a client must declare before it is asked a question. Revision 2026-07-28
// forbids a server to ask anything else.
type Need struct {
	Kind  mcpseal.Kind
	Tools bool // of a sampling question: it offers tools
}

// Meet reports whether the capabilities cover a question.
func (c Capabilities) Meet(need Need) bool {
	switch need.Kind {
	case mcpseal.KindForm:
		return c.Form
	case mcpseal.KindURL:
		return c.URL
	case mcpseal.KindSampling:
		return c.Sampling && (!need.Tools || c.SamplingTools)
	case mcpseal.KindRoots:
		return c.Roots
	}
	return false
}

// CapabilitiesIn reads capabilities as decoded from JSON.
func CapabilitiesIn(declared map[string]any) (c Capabilities) {
	if elicitation, ok := declared["elicitation"].(map[string]any); ok {
		_, c.Form = elicitation["form"]
		_, c.URL = elicitation["url"]
		c.Form = c.Form || len(elicitation) == 0
	}
	if sampling, ok := declared["sampling"].(map[string]any); ok {
		c.Sampling = true
		_, c.SamplingTools = sampling["tools"]
	}
	_, c.Roots = declared["roots"].(map[string]any)
	return c
}

// MissingCapabilities is the protocol's error for questions that a client has not
// declared it can answer. Its data lists the capabilities that the questions need.
func MissingCapabilities(needs ...Need) mcpseal.WireError {
	required := make(map[string]map[string]any)
	for _, name := range names(needs) {
		capability, part, _ := strings.Cut(name, ".")
		if required[capability] == nil {
			required[capability] = make(map[string]any)
		}
		if part != "" {
			required[capability][part] = struct{}{}
		}
	}
	data, err := json.Marshal(map[string]any{"requiredCapabilities": required})
	if err != nil {
		panic("adapter: " + err.Error()) // the value above can always be written
	}
	return mcpseal.WireError{Code: -32021, Message: "Missing required client capabilities", Data: data}
}

// CapabilityNames names the capabilities that questions need, such as elicitation.form,
// sorted, for an SDK that cannot send the data of an error.
func CapabilityNames(needs ...Need) string { return strings.Join(names(needs), ", ") }

func names(needs []Need) (names []string) {
	for _, need := range needs {
		switch need.Kind {
		case mcpseal.KindForm:
			names = append(names, "elicitation.form")
		case mcpseal.KindURL:
			names = append(names, "elicitation.url")
		case mcpseal.KindSampling:
			if need.Tools {
				names = append(names, "sampling.tools")
			} else {
				names = append(names, "sampling")
			}
		case mcpseal.KindRoots:
			names = append(names, "roots")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
