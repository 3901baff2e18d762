package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
)

// Questions returns questions as [tripseal.Boundary.Seal] needs them. It fails if the
// client has not declared that it can answer them; mcp-go does not check that. Pass the
// context that the handler got. If Questions fails, the handler must return the error
// unchanged. Use Questions in a handler that calls Seal itself.
func (p *Protection) Questions(ctx context.Context, questions mcp.InputRequests) ([]tripseal.Question, error) {
	return p.questions(ctx, declaredBy(ctx), questions)
}

func (p *Protection) questions(ctx context.Context, declared adapter.Capabilities, questions mcp.InputRequests) ([]tripseal.Question, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	if sharesStdio(ctx) {
		return nil, p.refuse(ctx, "", stdioShared)
	}
	sealed := make([]tripseal.Question, 0, len(questions))
	missing := false
	for key, question := range questions {
		need := needOf(&question)
		if need.Kind == 0 || !utf8.ValidString(key) {
			return nil, p.refuse(ctx, "", fmt.Sprintf("the question %.40q has no valid params for its method, %.40q, or its key is not UTF-8", key, string(question.Method)))
		}
		if err := checkWritable(&question); err != nil {
			return nil, p.refuse(ctx, "", "a question cannot be written as JSON: "+err.Error())
		}
		missing = missing || !declared.Meet(need)
		sealed = append(sealed, tripseal.Question{Key: key, Kind: need.Kind})
	}
	if missing {
		return nil, missingCapabilities(questions)
	}
	return sealed, nil
}

// needOf returns the capability that a client must declare before it is asked a question.
// The result's Kind is 0 if the question is invalid.
func needOf(q *mcp.InputRequest) adapter.Need {
	switch {
	case q.Method == mcp.MethodElicitationCreate && q.Elicitation != nil && q.Elicitation.Validate() == nil:
		if q.Elicitation.Mode == mcp.ElicitationModeURL {
			return adapter.Need{Kind: tripseal.KindURL}
		}
		return adapter.Need{Kind: tripseal.KindForm}
	case q.Method == mcp.MethodSamplingCreateMessage && q.Sampling != nil:
		return adapter.Need{Kind: tripseal.KindSampling, Tools: len(q.Sampling.Tools) > 0 || q.Sampling.ToolChoice != nil}
	case q.Method == mcp.MethodListRoots:
		return adapter.Need{Kind: tripseal.KindRoots}
	}
	return adapter.Need{}
}

// checkWritable returns an error if a question cannot be written as JSON. With such a question,
// mcp-go would not answer the client. On stdio, it could panic and so end the process.
func checkWritable(q *mcp.InputRequest) error {
	if e := q.Elicitation; q.Method == mcp.MethodElicitationCreate && e != nil && e.Meta == nil {
		return adapter.CheckWritable(e.RequestedSchema)
	}
	return adapter.CheckWritable(q)
}

// declaredBy returns the capabilities that the client declared in the request. An older
// client declares none in its requests, so for such a client declaredBy returns those from
// the handshake. On a stateless server, all older clients share one session, whose id is "":
// one of them would get the questions of another, and no answer could arrive. So declaredBy
// returns no capabilities for this session, and the client is not asked.
func declaredBy(ctx context.Context) adapter.Capabilities {
	var declared *mcp.ClientCapabilities
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil {
		declared = info.ClientCapabilities
	}
	if declared != nil {
		return capabilities(*declared)
	}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok && session.SessionID() != "" {
		return capabilities(session.GetClientCapabilities())
	}
	return adapter.Capabilities{}
}

func capabilities(declared mcp.ClientCapabilities) (c adapter.Capabilities) {
	if e := declared.Elicitation; e != nil {
		c.Form, c.URL = e.Form != nil || e.URL == nil, e.URL != nil
	}
	if s := declared.Sampling; s != nil {
		c.Sampling, c.SamplingTools = true, s.Tools != nil
	}
	c.Roots = declared.Roots != nil
	return c
}

// missingCapabilities returns the error for a client that has not declared the capabilities
// that these questions need. mcp-go sends only the text of an error, so the text lists the
// capabilities.
func missingCapabilities(questions mcp.InputRequests) error {
	var needs []adapter.Need
	for _, question := range questions {
		needs = append(needs, needOf(&question))
	}
	return errors.New(adapter.MissingCapabilities().Message + ": " + adapter.CapabilityNames(needs...))
}
