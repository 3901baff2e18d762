package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tripseal/tripseal"
)

// userPromises are the promises about who is calling.
var userPromises = slices.Concat(
	forCarriers(allCarriers, "two users cannot use each other's states", twoUsers),
	forCarriers(allCarriers, "a state of a user is rejected for nobody, and the reverse", userOrNobody),
	forCarriers(allCarriers, "an empty name fails the check", emptyName),
	forCarriers(allCarriers, "a principal that fails is a rejection like any other", failingPrincipal),
	forCarriers(allCarriers, "a principal that panics is a rejection like any other", panickingPrincipal),
	forCarriers(allCarriers, "a user is required if the boundary says so", requiredUser),
	[]promise{{"users who call at once get their own states", atOnce}},
)

func twoUsers(a *trial, c carrier) {
	rig := a.serve(confirm)
	alice, bob := rig.begin(c.from("alice")), rig.begin(c.from("bob"))
	rig.rejects("the state of alice for bob", alice.as("bob"))
	rig.rejects("the state of bob for alice", bob.as("alice"))
	rig.completes(alice)
	rig.completes(bob)
}

func userOrNobody(a *trial, c carrier) {
	rig := a.serve(confirm, anonymous)
	alice, nobody := rig.begin(c.from("alice")), rig.begin(c.from(""))
	rig.rejects("the state of alice for nobody", alice.as(""))
	rig.rejects("the state of nobody for alice", nobody.as("alice"))
	rig.completes(alice)
	rig.completes(nobody)
}

func emptyName(a *trial, c carrier) {
	keys := tripseal.Ephemeral()
	rig := a.serve(confirm, keyed(keys))
	rig.fails("a question to a user without a name", rig.send(c.from("")))
	rig.rejects("the state of nobody", a.serve(confirm, keyed(keys), anonymous).begin(c.from("")))
	rig.rejects("the state of alice", rig.begin(c.from("alice")).as(""))
}

// failingFor returns a principal that fails for one user.
func failingFor(name string) func(context.Context, string) (string, error) {
	return func(_ context.Context, user string) (string, error) {
		if user == name {
			return "alice", errors.New("hush: the principal failed")
		}
		return user, nil
	}
}

// failing makes the principal fail for a user who is called nameless.
func failing(_ *tripseal.Config, server *Server) { server.Principal = failingFor("nameless") }

func failingPrincipal(a *trial, c carrier) {
	principalIsAsked(a, c, failingFor("mallory"))
}

func panickingPrincipal(a *trial, c carrier) {
	principalIsAsked(a, c, func(_ context.Context, user string) (string, error) {
		if user == "mallory" {
			panic("hush: the principal panicked")
		}
		return user, nil
	})
}

func principalIsAsked(a *trial, c carrier, principal func(context.Context, string) (string, error)) {
	rig := a.serve(confirm, func(_ *tripseal.Config, server *Server) { server.Principal = principal })
	retry := rig.begin(c.from("alice"))
	rig.rejects("a forged state", retry.bringing("ms1.AAAA"))
	rig.rejects("a caller whom the principal cannot name", retry.as("mallory"))
	rig.fails("a question to a caller whom the principal cannot name", rig.send(c.from("mallory")))
	rig.completes(retry)
}

func requiredUser(a *trial, c carrier) {
	required := func(config *tripseal.Config, _ *Server) { config.RequireUser = true }
	rig := a.serve(confirm, anonymous, required)
	rig.fails("a question to nobody", rig.send(c.from("")))
	retry := rig.begin(c.from("alice"))
	rig.rejects("the state of alice for nobody", retry.as(""))
	rig.completes(retry)
}

// atOnce runs flows of several users at the same time. Each flow has its own arguments.
func atOnce(a *trial) {
	rig := a.serve(func(_ context.Context, call Call) (Result, error) {
		if call.State != "" {
			return Result{Text: call.State + " " + call.Answers["confirm"]}, nil
		}
		questions := map[string]tripseal.Kind{"confirm": tripseal.KindForm}
		return Result{State: "state of " + textOf(call.Arguments), Questions: questions}, nil
	})
	var users sync.WaitGroup
	for u := range 6 {
		users.Go(func() {
			for i := range 8 {
				c, id := withArguments[i%2], fmt.Sprintf("id-%d-%d", u, i)
				request := c.from("user" + fmt.Sprint(u)).with(`{"region":"` + id + `"}`)
				asked := rig.send(request)
				answers := `{"confirm":{"action":"accept","content":{"value":"answer-` + id + `"}}}`
				done := rig.send(request.bringing(asked.token()).answering(answers))
				if asked.token() == "" || !containsAll(done.text(), "state of", `"`+id+`"`, "answer-"+id) {
					a.failf("%s: %.500s and %.500s", id, asked.raw, done.raw)
				}
				lent := rig.send(request.as("stranger").bringing(asked.token()).answering(answers))
				rig.isRefusal("a state that was lent", lent, tripseal.Wire(tripseal.ErrRejected))
			}
		})
	}
	users.Wait()
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
