// Package elicit lets a handler ask its user in the middle of its code, whatever the SDK. A call may have many rounds,
// and the server stores nothing between them.
//
//	func remove(ctx context.Context, ask *elicit.Asker, in Files) (Removed, error) {
//		confirm := elicit.Form[Confirm](ask, "confirm", "Delete everything in "+in.Dir+"?")
//		reason := elicit.Form[Reason](ask, "reason", "Why?") // is sent in the same round
//		c, err := confirm.Value()
//		if err != nil {
//			return Removed{}, err // not answered yet, declined, or cancelled
//		}
//		…
//	}
//
//	mcp.AddTool(server, &mcp.Tool{Name: "remove"}, gosdk.AskingTool(remove)) // the official SDK
//	srv.AddTool(mcp.NewTool("remove"), mcpgo.AskingTool(remove))             // mcp-go
//
// In every round the handler runs from its beginning. A question that was answered in an earlier round returns its
// answer at once. Any other answer is pending: when the handler reads it, the call asks, whatever the handler returns.
// So the code before the last question must be safe to run again; [Once] keeps a value that must not be computed again.
// A function deep inside a handler finds the call's [Asker] with [From].
//
// Answers are kept in the sealed state until the call is done. An answer counts only for exactly the question that was
// asked: if the words or the form change, the question is asked again, and so are the questions that the handler asked
// after it had read the old answer. An answer that does not fit its question fails the call, and so does a refusal that
// the handler has not read.
//
// A server must be protected, by package gosdk or by a door of package wire: otherwise a call that would ask fails.
// Authors of bindings and adapters use [Run] and [Arrive]; a handler that opens and seals by itself does, too.
package elicit
