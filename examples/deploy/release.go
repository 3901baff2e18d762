package main

import (
	"fmt"
	"strings"
)

// This file is what the server does, without an SDK: gosdk.go and mcpgo.go serve it.

// Args are the arguments of the tools deploy and rollback.
type Args struct {
	Service string `json:"service" jsonschema:"what to release"`
	Version string `json:"version" jsonschema:"which version"`
}

// plan is the state that a tool remembers between two rounds.
type plan struct {
	Confirmed bool `json:"confirmed"`
	Traffic   int  `json:"traffic"` // the percentage of the traffic that the release may get
}

// question asks the user to fill in one field.
type question struct{ key, message, field, kind string }

func (q *question) schema() map[string]any {
	field := map[string]any{q.field: map[string]any{"type": q.kind}}
	return map[string]any{"type": "object", "properties": field, "required": []string{q.field}}
}

// answers holds what the user answered, by the key of the question.
type answers map[string]answer

type answer struct {
	accepted bool // false if the user declined or cancelled the question
	content  map[string]any
}

// next returns what a tool does in this round: it asks a question, or it is done and returns a
// text. It first asks for a confirmation, then for a region, and then acts. It does nothing if the
// user declines or cancels, and asks again if an answer has the wrong fields or types.
func (p *plan) next(done string, in Args, from answers) (ask *question, text string) {
	for _, a := range from {
		if !a.accepted {
			return nil, "nothing was done"
		}
	}
	yes, answered := field[bool](from, "confirm", "ok")
	if answered && !yes {
		return nil, "nothing was done"
	}
	if p.Confirmed = p.Confirmed || answered; !p.Confirmed {
		p.Traffic = 10
		message := fmt.Sprintf("Really do this to %s %s?", in.Service, in.Version)
		return &question{"confirm", message, "ok", "boolean"}, ""
	}
	region, _ := field[string](from, "region", "name")
	if strings.TrimSpace(region) == "" {
		return &question{"region", "In which region?", "name", "string"}, ""
	}
	return nil, fmt.Sprintf("%s %s %s in %s, %d%% of traffic", done, in.Service, in.Version, region, p.Traffic)
}

// field returns the value of one field in the answer to the question with this key. answered is
// true if the answer has exactly this field, with a value of type T.
func field[T any](from answers, key, name string) (value T, answered bool) {
	content := from[key].content
	value, answered = content[name].(T)
	return value, answered && len(content) == 1
}

// ListArgs are the arguments of the tool list_versions, without the cursor.
type ListArgs struct {
	Service string `json:"service" jsonschema:"of which service"`
	Limit   int    `json:"limit,omitempty" jsonschema:"versions on a page, 10 if left out, at most 50"`
}

// listVersions returns the versions of a service that come after the given one; nil means the
// first page. A page begins after a version and not at an offset, so a walk over the pages skips
// and repeats nothing when versions come and go.
func listVersions(in ListArgs, after *int) (page []string, next *int) {
	const newest = 99
	version, limit := 0, 10
	if after != nil {
		version = *after + 1
	}
	if in.Limit > 0 {
		limit = min(in.Limit, 50)
	}
	for ; version <= newest && len(page) < limit; version++ {
		page = append(page, fmt.Sprintf("%s 1.%d.0", in.Service, version))
	}
	if last := version - 1; last < newest {
		return page, &last
	}
	return page, nil
}
