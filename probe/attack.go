package probe

// Attack is one class of attacks. The probe tries several variants of each class. [Attacks]
// returns all classes. To try only some of them, list their ids in [Options].Only.
type Attack struct {
	ID       string   `json:"id"`       // the name of the attack in --require and in reports
	Title    string   `json:"title"`    // what is sent
	Means    string   `json:"means"`    // what it means if the attack gets through
	Section  Section  `json:"section"`  // the section of the specification that the attack is about
	Fix      string   `json:"fix"`      // what to do about a finding
	Severity Severity `json:"severity"` // how bad a finding is
	AtMost   int      `json:"atMost"`   // the maximum number of requests, honest ones included, for each round in which a target asks questions, or for each list or paged tool
	Honest   int      `json:"honest"`   // how many honest calls the attack completes for each target

	unsolicited bool // true if the attack also gets through on a tool that is meant to accept answers in its first call
	honestState bool // true if the state is genuine and something else is wrong, so a refusal says nothing about the state
	early       bool // true if the specification wants a refusal before the server looks at the state
	ranFirst    bool // true if the probe takes a tool's error as proof that the tool ran; an error is no proof if a call with a made-up state gets the same error
	consent     bool // true if two results are harmless: what the target returns after a refusal by the user, and what it returns after a retry without answers
	needs       need
	try         func(*trial)
}

// Severity is how bad a finding is. Use it to decide what to fix first.
type Severity string

// The severities, worst first.
const (
	High   Severity = "high"   // a client does what the server did not allow
	Medium Severity = "medium" // a client learns what it should not, or gets around a check
	Low    Severity = "low"    // a weakness that does harm only together with another one, or an honest client that is refused
)

// Section is a section of the specification. Each [Attack] names the section whose rule
// it checks.
type Section struct {
	Title string `json:"title"` // the heading of the section
	URL   string `json:"url"`   // the address of the section
}

const specification = "https://modelcontextprotocol.io/specification/" + revision

var (
	integrity    = Section{"Multi Round-Trip Requests, server requirement 4: integrity", specification + "/basic/patterns/mrtr#server-requirements-basic-workflow"}
	replay       = Section{"Multi Round-Trip Requests, server requirement 5: principal, expiry, originating request", specification + "/basic/patterns/mrtr#server-requirements-basic-workflow"}
	once         = Section{"Multi Round-Trip Requests, server requirement 5, warning: at most once", specification + "/basic/patterns/mrtr#server-requirements-basic-workflow"}
	declared     = Section{"Multi Round-Trip Requests, server requirement 7: capabilities", specification + "/basic/patterns/mrtr#server-requirements-basic-workflow"}
	supported    = Section{"Multi Round-Trip Requests, supported requests", specification + "/basic/patterns/mrtr#supported-requests"}
	answering    = Section{"Multi Round-Trip Requests, error handling", specification + "/basic/patterns/mrtr#error-handling"}
	security     = Section{"Multi Round-Trip Requests, security considerations", specification + "/basic/patterns/mrtr#security-considerations"}
	headersMatch = Section{"Streamable HTTP, request metadata", specification + "/basic/transports/streamable-http#request-metadata"}
	basic        = Section{"Overview, responses", specification + "/basic#responses"}
	pagination   = Section{"Pagination, error handling", specification + "/server/utilities/pagination#error-handling"}
)

// tries(variants) is how many requests an attack with this many variants sends at most, if the
// target asks questions in one round. The number includes the honest calls before and after the
// attack. Some servers make a state invalid when they refuse it. To such a server, at most 64
// variants are sent again, each with a new state.
func tries(variants int) int { return variants + 2*min(variants, 64) + 10 }

// maxRequests returns the maximum number of requests that the attack sends. The parameter
// rounds is how many times all targets together ask questions. The parameter books is how many
// lists and paged tools there are.
func (a *Attack) maxRequests(rounds, books int) int {
	n := a.AtMost
	if a.needs&needState != 0 {
		n *= rounds
	}
	if a.needs&needCursor != 0 {
		n *= books
	}
	return n
}

// need is a set of things without which an attack cannot be tried.
type need int

const (
	needState  need = 1 << iota // a target that issues a state
	needHTTP                    // a server over HTTP, for the headers
	needUsers                   // the bearer tokens of two users
	needMaxAge                  // a value for Options.MaxAge
	needCursor                  // a list or a tool that issues a cursor
)

// Attacks returns all attacks, in the order in which the probe tries them. Use it to show
// the list to a person, or to find the ids for [Options].
func Attacks() []Attack { return append([]Attack(nil), attacks...) }

var attacks []Attack

func init() {
	for _, some := range [][]Attack{stateAttacks, answerAttacks, requestAttacks, httpAttacks, useAttacks, cursorAttacks, rejectionAttacks, lastAttacks} {
		attacks = append(attacks, some...)
	}
}
