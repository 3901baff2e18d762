package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// listPromises are the promises about the cursors of lists.
var listPromises = slices.Concat(
	forLists("a list is whole, and its cursors are sealed", wholeList),
	forLists("a forged cursor is refused", forgedCursor),
	forLists("a cursor of another user is refused", lentCursor),
	forLists("a cursor of another list is refused", movedCursor),
	forLists("a cursor of another service is refused", otherServicesCursor),
	forLists("a principal that fails refuses the cursor", unnamedCursor),
	forLists("a cursor needs a user if the boundary says so", cursorOfAUser),
	forLists("a refused cursor is one event, with a reason", refusedCursorEvent),
	[]promise{{"a state is no cursor, and a cursor is no state", stateOrCursor}},
)

var allLists = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

func forLists(name string, test func(*trial, string)) []promise {
	var promises []promise
	for _, list := range allLists {
		prefix := strings.ReplaceAll(strings.TrimSuffix(list, "/list"), "/", " ")
		promises = append(promises, promise{"list of " + prefix + ": " + name, func(a *trial) { test(a, list) }})
	}
	return promises
}

// listed is an option that gives the server 25 entries in every list, and pages of 10
// entries.
func listed(_ *tripseal.Config, server *Server) {
	server.PageSize = 10
	fill := func(handlers map[string]Handler, name string) {
		for i := len(handlers); i < 25; i++ {
			handlers[fmt.Sprintf(name, i)] = confirm
		}
	}
	fill(server.Tools, "entry%02d")
	fill(server.Prompts, "entry%02d")
	fill(server.Resources, "test://host/entry%02d")
	fill(server.Templates, "test://host/entry%02d/{id}")
}

func (r *rig) list(user, method, cursor string) *response {
	params := ""
	if cursor != "" {
		params = `"cursor":` + quoted(cursor)
	}
	return r.post(user, method, params, everyCapability)
}

// firstCursor returns the cursor that is on the first page and leads to the second.
func (r *rig) firstCursor(user, method string) string {
	response := r.list(user, method, "")
	if response.Result == nil || response.Result.NextCursor == "" {
		r.stopf("no cursor: %.500s", response.raw)
	}
	return response.Result.NextCursor
}

func (r *rig) refuses(what, user, method, text string) {
	r.isRefusal(what, r.list(user, method, text), cursor.Wire(cursor.ErrInvalid))
}

func (r *rig) goesOn(user, method, text string) {
	if response := r.list(user, method, text); len(entries(response)) == 0 {
		r.failf("a good cursor: %.500s", response.raw)
	}
}

func entries(response *response) (names []string) {
	if response.Result == nil {
		return nil
	}
	for _, e := range response.Result.Tools {
		names = append(names, e.Name)
	}
	for _, e := range response.Result.Prompts {
		names = append(names, e.Name)
	}
	for _, e := range response.Result.Resources {
		names = append(names, e.URI)
	}
	for _, e := range response.Result.Templates {
		names = append(names, e.URITemplate)
	}
	return names
}

func wholeList(a *trial, method string) {
	rig := a.serve(confirm, listed)
	all, text := map[string]bool{}, ""
	for page := range 3 {
		response := rig.list("alice", method, text)
		for _, name := range entries(response) {
			all[name] = true
		}
		if response.Result == nil {
			a.stopf("page %d: %.500s", page, response.raw)
		}
		text = response.Result.NextCursor
		if want := page < 2; strings.HasPrefix(text, tripseal.PurposeCursor.Prefix()) != want || (text != "") != want {
			a.failf("page %d has the cursor %q", page, text)
		}
	}
	if len(all) != 25 {
		a.failf("%d entries of 25", len(all))
	}
}

func forgedCursor(a *trial, method string) {
	rig := a.serve(confirm, listed)
	good := rig.firstCursor("alice", method)
	for _, forgery := range append(forgeries(good), "10", "MTA=", "MTA", strings.Repeat("A", 200_000)) {
		rig.refuses(fmt.Sprintf("%.40q", forgery), "alice", method, forgery)
	}
	rig.goesOn("alice", method, good)
}

func lentCursor(a *trial, method string) {
	rig := a.serve(confirm, listed, anonymous)
	alice, nobody := rig.firstCursor("alice", method), rig.firstCursor("", method)
	rig.refuses("the cursor of alice for bob", "bob", method, alice)
	rig.refuses("the cursor of alice for nobody", "", method, alice)
	rig.refuses("the cursor of nobody for alice", "alice", method, nobody)
	rig.refuses("a forged cursor", "alice", method, "mc1.AAAA")
	rig.goesOn("alice", method, alice)
	rig.goesOn("", method, nobody)
}

func movedCursor(a *trial, method string) {
	rig := a.serve(confirm, listed)
	for _, other := range allLists {
		if other != method {
			rig.refuses("a cursor of "+other, "alice", method, rig.firstCursor("alice", other))
		}
	}
}

func otherServicesCursor(a *trial, method string) {
	keys := tripseal.Ephemeral()
	ours := a.serve(confirm, listed, keyed(keys))
	theirs := a.serve(confirm, listed, keyed(keys), anotherService)
	text := ours.firstCursor("alice", method)
	theirs.refuses("the cursor of a service with the same keys", "alice", method, text)
	theirs.refuses("a forged cursor", "alice", method, "mc1.AAAA")
	a.serve(confirm, listed, keyed(keys)).goesOn("alice", method, text) // a replica accepts the cursor
}

func unnamedCursor(a *trial, method string) {
	rig := a.serve(confirm, listed, failing)
	text := rig.firstCursor("alice", method)
	rig.refuses("a caller whom the principal cannot name", "nameless", method, text)
	rig.refuses("a forged cursor", "alice", method, "mc1.AAAA")
	rig.refuses("a caller without a name", "", method, text)
	rig.fails("a first page for a caller whom the principal cannot name", rig.list("nameless", method, ""))
	rig.goesOn("alice", method, text)
}

func cursorOfAUser(a *trial, method string) {
	rig := a.serve(confirm, listed, anonymous, func(config *tripseal.Config, _ *Server) { config.RequireUser = true })
	rig.fails("a first page with a cursor for nobody", rig.list("", method, ""))
	text := rig.firstCursor("alice", method)
	rig.refuses("the cursor of alice for nobody", "", method, text)
	rig.goesOn("alice", method, text)
}

func refusedCursorEvent(a *trial, method string) {
	rig := a.serve(confirm, listed)
	text := rig.firstCursor("alice", method)
	before := len(rig.events.All())
	rig.list("bob", method, text)
	rig.list("alice", method, "junk")
	events := rig.events.All()[before:]
	if len(events) != 2 {
		a.stopf("the events of two refused cursors: %+v", events)
	}
	for i, reason := range []tripseal.Reason{tripseal.ReasonUser, tripseal.ReasonMalformed} {
		if e := events[i]; e.Op != cursor.OpOpen || e.Reason != reason || e.Method != method {
			a.failf("the event of a cursor that is refused with the reason %s: %+v", reason, e)
		}
	}
}

func stateOrCursor(a *trial) {
	rig := a.serve(confirm, listed)
	state, position := rig.begin(toolCarrier.from("alice")), rig.firstCursor("alice", "tools/list")
	rig.refuses("a state as a cursor", "alice", "tools/list", state.token)
	rig.rejects("a cursor as a state", state.bringing(position))
	swap := func(text, from, to string) string { return to + strings.TrimPrefix(text, from) }
	rig.refuses("a state with the prefix of a cursor", "alice", "tools/list", swap(state.token, "ms1.", "mc1."))
	rig.rejects("a cursor with the prefix of a state", state.bringing(swap(position, "mc1.", "ms1.")))
}
