// Package elicit lets a tool, a prompt or a resource of the official Go SDK ask
// questions in the middle of its code and get typed answers, over as many rounds
// as it takes, with nothing kept on the server.
//
//	protected := gosdk.Protect(server, boundary, nil)
//	elicit.AddTool(protected, &mcp.Tool{Name: "delete"}, func(ctx context.Context, ask *elicit.Asker, in Args) (Result, error) {
//		confirm := elicit.Form[Confirm](ask, "confirm", "Delete everything in "+in.Dir+"?")
//		reason := elicit.Form[Reason](ask, "reason", "Why?") // travels in the same round
//		c, err := confirm.Value()
//		if err != nil {
//			return Result{}, err // not answered yet, declined, or cancelled
//		}
//		…
//	})
//
// The handler runs from its beginning in every round. A question that was answered
// has its answer. Any other answer is pending: reading it makes the call ask, whatever
// the handler returns. So the code before the last question must be safe to run again;
// [Once] keeps what must not be computed again.
//
// Read the answer to every question before acting on it. If the user declined or
// cancelled a question, and the handler completes without having read that answer, the
// call fails.
//
// Answers are kept in the sealed state until the call is done. An answer is valid for
// exactly the question that was asked: if its words or its schema change, the question
// is asked again. Middleware that rewords questions after they are sealed breaks that:
// see [gosdk.Protect]. Clients of all protocol revisions are served alike.
//
// The SDK decodes answers before this package sees them: whole numbers beyond 2⁵³
// and lone surrogates change on the way.
package elicit
