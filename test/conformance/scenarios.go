package main

import (
	"fmt"
	"strings"

	"github.com/tripseal/tripseal"
)

const prefix = "test_input_required_result_"

// round is one round of a call. It depends on neither SDK, so that the scenarios run on both.
type round struct {
	state string // handlers can trust the state, because the middleware has checked it
	answers
	elicitation, sampling bool   // whether the client declared these capabilities
	user, arguments       string // whose call it is, and the arguments of a tool as they came in
}

// answers gives access to the answers that the client sent with a round.
type answers interface {
	form(key string) (content map[string]any, ok bool) // ok is true if the user accepted the form
	sample(key string) string                          // the text that the client's model wrote, or ""
	roots(key string) (uris []string, ok bool)
	refused() bool  // true if the user declined or cancelled a question
	keys() []string // of all answers
}

// reply is what a scenario returns: a final text, or questions to the user and the state for
// the next round.
type reply struct {
	text      string
	questions map[string]question
	state     string
}

// question is one question to the client: a form for the user, a request for a sample (a
// text written by the client's model), or a request for the list of roots.
type question struct {
	kind            tripseal.Kind
	message         string
	field, typeName string // only for a form: its one field, and the JSON type of that field
	maxTokens       int    // only for a sample: how many tokens the model may write
}

// tools holds the scenario of each tool that the suite calls. A tool's name consists of the
// constant named prefix and the key in this map.
var tools = map[string]func(round) reply{
	"elicitation":     elicitation,
	"sampling":        sampling,
	"list_roots":      listRoots,
	"request_state":   requestState,
	"multiple_inputs": multipleInputs,
	"multi_round":     multiRound,
	"tampered_state":  requestState,
	"capabilities":    capabilities,
}

// nothingDone is the text of the result if the user declined or cancelled a question.
const nothingDone = "nothing was done"

// play runs a scenario for one round and returns its reply. If the user declined or cancelled
// a question, the reply is the text nothingDone instead.
func play(scenario func(round) reply, r round) reply {
	if r.refused() {
		return text(nothingDone)
	}
	return scenario(r)
}

func text(format string, args ...any) reply { return reply{text: fmt.Sprintf(format, args...)} }

func ask(state string, questions map[string]question) reply {
	return reply{state: state, questions: questions}
}

// form returns a question with a form that has one field.
func form(message, field, typeName string) question {
	return question{kind: tripseal.KindForm, message: message, field: field, typeName: typeName}
}

func sample(message string, maxTokens int) question {
	return question{kind: tripseal.KindSampling, message: message, maxTokens: maxTokens}
}

func roots() question { return question{kind: tripseal.KindRoots} }

// schema returns the JSON Schema of a form.
func (q question) schema() map[string]any {
	return map[string]any{
		"type":       "object",
		"properties": map[string]any{q.field: map[string]any{"type": q.typeName}},
		"required":   []string{q.field},
	}
}

// accepted returns the value of one field in the user's answer to a question. key is the
// key of the question, and field is the name of the field. ok is true if the user accepted
// and the answer has exactly this field, with a value of type T. If ok is false, the scenarios
// ask again.
func accepted[T any](r round, key, field string) (value T, ok bool) {
	content, ok := r.form(key)
	if !ok || len(content) != 1 {
		return value, false
	}
	value, ok = content[field].(T)
	return value, ok
}

// fieldText returns the text that the user wrote into a field of a form. It returns false if the
// text is empty or missing.
func fieldText(r round, key, field string) (string, bool) {
	text, ok := accepted[string](r, key, field)
	return text, ok && text != ""
}

func elicitation(r round) reply {
	if name, ok := fieldText(r, "user_name", "name"); ok {
		return text("Hello, %s!", name)
	}
	return ask("", map[string]question{"user_name": form("What is your name?", "name", "string")})
}

func sampling(r round) reply {
	if answer := r.sample("capital_question"); answer != "" {
		return text("%s", answer)
	}
	return ask("", map[string]question{"capital_question": sample("What is the capital of France?", 100)})
}

func listRoots(r round) reply {
	if uris, ok := r.roots("client_roots"); ok {
		return text("%d roots: %s", len(uris), strings.Join(uris, " "))
	}
	return ask("", map[string]question{"client_roots": roots()})
}

func requestState(r round) reply {
	if yes, ok := accepted[bool](r, "confirm", "ok"); ok && r.state == "asked" {
		if !yes {
			return text(nothingDone)
		}
		return text("state-ok")
	}
	return ask("asked", map[string]question{"confirm": form("Please confirm", "ok", "boolean")})
}

func multipleInputs(r round) reply {
	name, named := fieldText(r, "user_name", "name")
	greeting := r.sample("greeting")
	uris, listed := r.roots("client_roots")
	if named && greeting != "" && listed {
		return text("%s %s, with %d roots", greeting, name, len(uris))
	}
	return ask("all three", map[string]question{
		"user_name":    form("What is your name?", "name", "string"),
		"greeting":     sample("Generate a greeting", 50),
		"client_roots": roots(),
	})
}

func multiRound(r round) reply {
	if color, ok := fieldText(r, "step2", "color"); ok {
		return text("%s likes %s", r.state, color)
	}
	if name, ok := fieldText(r, "step1", "name"); ok {
		return ask(name, map[string]question{"step2": form("Step 2: What is your favorite color?", "color", "string")})
	}
	return ask("step 1", map[string]question{"step1": form("Step 1: What is your name?", "name", "string")})
}

// capabilities is a scenario. It asks only the kinds of questions that the client declared, and
// asks them again until all are answered.
func capabilities(r round) reply {
	questions, answered := map[string]question{}, true
	if r.elicitation {
		questions["user_name"] = form("What is your name?", "name", "string")
		_, named := fieldText(r, "user_name", "name")
		answered = answered && named
	}
	if r.sampling {
		questions["greeting"] = sample("Generate a greeting", 50)
		answered = answered && r.sample("greeting") != ""
	}
	if len(questions) > 0 && answered {
		return text("thank you")
	}
	return ask("", questions)
}

func prompt(r round) reply {
	if answer, ok := fieldText(r, "user_context", "context"); ok {
		return text("With this in mind: %s", answer)
	}
	return ask("", map[string]question{"user_context": form("What context should the prompt use?", "context", "string")})
}
