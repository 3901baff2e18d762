// Package elicit lets a tool, a prompt or a resource of the official Go SDK ask the user
// questions in the middle of its code and get typed answers. A call may have many rounds,
// and the server stores nothing between them.
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
// In every round the handler runs from its beginning. If a question was answered in an
// earlier round, the handler gets the answer at once. Otherwise the answer is pending:
// when the handler reads it, the call sends its questions to the client, whatever the
// handler returns. Because the handler runs from its beginning each time, the code
// before the last question must be safe to run again. [Once] keeps a value that must
// not be computed again.
//
// Read the answer to a question before you do what the question is about. If the user
// declined or cancelled a question, and the handler completes without having read that
// answer, the call fails.
//
// Answers are kept in the sealed state until the call is done. An answer is valid for
// exactly the question that was asked. If the words or the schema of the question change,
// the call asks it again. If the handler had read the old answer before it asked other
// questions, the call asks these again too. Middleware must not reword questions after
// they are sealed: the answers would count as answers to the original words (see
// [gosdk.Protect]). A handler works the same for clients of all protocol revisions.
//
// The SDK decodes answers before this package gets them. The decoding changes lone
// surrogates, and whole numbers beyond 2⁵³.
package elicit
