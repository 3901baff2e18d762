package suite

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tripseal/tripseal"
)

// handlerPromises are the promises about handlers that fail.
var handlerPromises = slices.Concat(
	forCarriers(allCarriers, "a panic of a handler tells the client nothing, and the server lives", handlerPanics),
	forCarriers(allCarriers, "an error of a handler is not a rejection", handlerFails),
	forCarriers(allCarriers, "a state that is too long is not sealed", longState),
	forCarriers(allCarriers, "questions that cannot be sealed are not asked", badQuestions),
	forCarriers(allCarriers, "a codec that fails tells the client nothing", codecFails),
)

func handlerPanics(a *trial, c carrier) {
	rig := a.serve(func(ctx context.Context, call Call) (Result, error) {
		if call.Answers["confirm"] != "" {
			panic("hush: the handler panicked")
		}
		return confirm(ctx, call)
	})
	retry := rig.begin(c.from("alice"))
	for range 2 {
		rig.fails("a handler that panics", rig.send(retry))
	}
	if rig.begin(c.from("alice")); rig.runCount() != 4 {
		a.failf("the handler ran %d times", rig.runCount())
	}
}

func handlerFails(a *trial, c carrier) {
	rig := a.serve(func(ctx context.Context, call Call) (Result, error) {
		if call.Answers["confirm"] != "" {
			return Result{State: secretState}, errors.New("not today")
		}
		return confirm(ctx, call)
	})
	response := rig.send(rig.begin(c.from("alice")))
	rig.fails("a handler that fails", response)
	if !strings.Contains(response.raw, "not today") {
		a.failf("the handler's error is lost: %.500s", response.raw)
	}
	if reasons := rig.events.Reasons(); len(reasons) != 0 {
		a.failf("rejected: %v", reasons)
	}
}

func longState(a *trial, c carrier) {
	for _, size := range []int{16 << 10, 16<<10 + 1, 64<<10 + 1, 1 << 20} {
		rig := a.serve(func(ctx context.Context, call Call) (Result, error) {
			result, err := confirm(ctx, call)
			if result.Questions != nil {
				result.State = strings.Repeat("hush", size/4+1)[:size]
			}
			return result, err
		})
		if size <= 16<<10 {
			rig.completes(rig.begin(c.from("alice")))
			if got := len(rig.lastCall().state); got != size {
				a.failf("a state of %d bytes came back with %d", size, got)
			}
			continue
		}
		rig.fails("a state that is too long", rig.send(c.from("alice")))
	}
}

func badQuestions(a *trial, c carrier) {
	many := make(map[string]tripseal.Kind)
	for i := range tripseal.MaxQuestions + 1 {
		many[strings.Repeat("q", i+1)] = tripseal.KindForm
	}
	for what, questions := range map[string]map[string]tripseal.Kind{
		"too many": many, "a long key": {strings.Repeat("q", tripseal.MaxQuestionKey+1): tripseal.KindForm},
	} {
		rig := a.serve(func(context.Context, Call) (Result, error) {
			return Result{State: secretState, Questions: questions}, nil
		})
		rig.fails(what, rig.send(c.from("alice")))
	}
}

// failingFormat is a format whose Seal always fails.
type failingFormat struct{ tripseal.Format }

func (failingFormat) Seal(context.Context, *tripseal.Binding, *tripseal.Claims) (string, error) {
	return "", errors.New("hush: the format failed")
}

func codecFails(a *trial, c carrier) {
	rig := a.serve(confirm, func(config *tripseal.Config, _ *Server) {
		config.Keys, config.Format = nil, failingFormat{tripseal.NativeFormat(tripseal.Ephemeral())}
	})
	rig.fails("a format that fails", rig.send(c.from("alice")))
}
