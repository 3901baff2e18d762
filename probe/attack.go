package probe

// Attack is one class of attacks. It tries several variants.
type Attack struct {
	ID       string   `json:"id"`       // as in --require and in reports
	Title    string   `json:"title"`    // what is sent
	Means    string   `json:"means"`    // what it means if it gets through
	Section  Section  `json:"section"`  // what the specification says
	Fix      string   `json:"fix"`      // what to do about a finding
	Severity Severity `json:"severity"` // how bad a finding is
	AtMost   int      `json:"atMost"`   // how many requests it sends for each target that asks once, or for each list, honest ones included
	Honest   int      `json:"honest"`   // how many honest calls it completes for each target

	unsolicited bool // whether it gets through on a tool that takes answers with its first call
	honestState bool // whether the state is good and something else is not, so that a refusal says nothing of the state
	early       bool // whether a refusal before the state is looked at is what the specification wants
	ranFirst    bool // whether a tool's error that is no refusal means that the tool ran
	consent     bool // whether it must be the user's consent that was taken, because a refusal harms nobody
	needs       need
	try         func(*trial)
}

// Severity is how bad a finding is.
type Severity string

// The severities, worst first.
const (
	High   Severity = "high"   // a client does what the server did not allow
	Medium Severity = "medium" // a client learns what it should not, or takes another way around
	Low    Severity = "low"    // a weakness that needs another one, or an honest client is refused
)

// Section is a section of the specification.
type Section struct {
	Title string `json:"title"`
	URL   string `json:"url"`
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
	pagination   = Section{"Pagination, error handling", specification + "/server/utilities/pagination#error-handling"}
)

// tries returns how many requests so many variants take for a target that asks once: with honest
// calls before and after, and all over again with a new state for each of at most 64 if the
// server spends a state that it refuses.
func tries(variants int) int { return variants + 2*min(variants, 64) + 10 }

// most returns how many requests the attack sends if there are so many lists, and if the targets
// ask so many times in all.
func (a *Attack) most(rounds, books int) int {
	n := a.AtMost
	if a.needs&needState != 0 {
		n *= rounds
	}
	if a.needs&needCursor != 0 {
		n *= books
	}
	return n
}

// need is what an attack cannot do without.
type need int

const (
	needState  need = 1 << iota // a target that issues a state
	needHTTP                    // headers
	needUsers                   // two bearer tokens
	needMaxAge                  // Options.MaxAge
	needCursor                  // a list or a tool that issues a cursor
)

// Attacks returns all attacks, in the order in which the probe tries them.
func Attacks() []Attack { return append([]Attack(nil), attacks...) }

var attacks []Attack

func init() {
	for _, some := range [][]Attack{stateAttacks, answerAttacks, requestAttacks, httpAttacks, useAttacks, cursorAttacks, rejectionAttacks, lastAttacks} {
		attacks = append(attacks, some...)
	}
}
