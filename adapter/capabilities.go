package adapter

import (
	"encoding/json"

	"github.com/tripseal/tripseal"
)

// Capabilities is what a client has declared for one request: the kinds of questions that it can answer.
type Capabilities struct {
	Form, URL     bool // elicitation; a client that declares elicitation without a mode can answer forms
	Sampling      bool // sampling requests without tools
	SamplingTools bool // sampling requests that offer tools
	Roots         bool // requests for the list of roots
}

// Need is what a client must declare before a server asks it a question, by the rules of revision 2026-07-28.
type Need struct {
	Kind  tripseal.Kind // the kind of the question
	Tools bool          // true for a sampling request that offers tools
}

// Meet reports whether a client with these capabilities can answer a question with this need. If it cannot answer one
// of the questions of a result, send [MissingCapabilities] instead.
func (c Capabilities) Meet(need Need) bool {
	return need.Kind == tripseal.KindForm && c.Form || need.Kind == tripseal.KindURL && c.URL ||
		need.Kind == tripseal.KindSampling && c.Sampling && (!need.Tools || c.SamplingTools) ||
		need.Kind == tripseal.KindRoots && c.Roots
}

// CapabilitiesIn converts the capabilities that a client declared, as encoding/json decodes them.
func CapabilitiesIn(declared map[string]any) (c Capabilities) {
	if elicitation, ok := declared["elicitation"].(map[string]any); ok {
		_, c.Form = elicitation["form"]
		_, c.URL = elicitation["url"]
		c.Form = c.Form || !c.URL
	}
	if sampling, ok := declared["sampling"].(map[string]any); ok {
		c.Sampling = true
		_, c.SamplingTools = sampling["tools"]
	}
	_, c.Roots = declared["roots"].(map[string]any)
	return c
}

// MissingCapabilities returns the protocol's error for a client that lacks capabilities for some questions. The error's
// data lists what these questions need.
func MissingCapabilities(needs ...Need) tripseal.WireError {
	type object = map[string]any
	elicitation, sampling, required := object{}, object{}, object{}
	for _, need := range needs {
		switch need.Kind {
		case tripseal.KindForm:
			elicitation["form"], required["elicitation"] = object{}, elicitation
		case tripseal.KindURL:
			elicitation["url"], required["elicitation"] = object{}, elicitation
		case tripseal.KindSampling:
			if required["sampling"] = sampling; need.Tools {
				sampling["tools"] = object{}
			}
		case tripseal.KindRoots:
			required["roots"] = object{}
		}
	}
	data, _ := json.Marshal(object{"requiredCapabilities": required}) // such a value can always be written as JSON
	return tripseal.WireError{Code: -32021, Message: "Missing required client capabilities", Data: data}
}
