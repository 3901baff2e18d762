package cursor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strconv"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// If a tool has a cursor among its arguments, its handler removes the cursor from them before
// it opens the cursor. The cursor is bound to the other arguments, and every page has a new
// cursor.
func Example() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral()})
	if err != nil {
		log.Fatal(err)
	}
	cursors, err := cursor.New(boundary, cursor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	type arguments struct {
		Status string `json:"status"`
		Cursor string `json:"cursor,omitempty"`
	}

	listRows := func(ctx context.Context, user string, params []byte) (ids []int, next string, err error) {
		var in arguments
		if err := json.Unmarshal(params, &in); err != nil {
			return nil, "", err
		}
		token := in.Cursor
		in.Cursor = ""
		bound, err := json.Marshal(in) // the arguments as this handler understood them, without the cursor
		if err != nil {
			return nil, "", err
		}
		page, err := cursors.Open(ctx, tripseal.Request{
			Method: "tools/call", Target: "list_rows", Arguments: bound, Principal: tripseal.User(user),
		}, token)
		if err != nil {
			return nil, "", err
		}
		last := 2
		if !page.First() {
			after, err := strconv.Atoi(string(page.Position()))
			if err != nil {
				return nil, "", err
			}
			last = after + 2
		}
		ids = []int{last - 1, last} // stands for a query of the rows with the requested status
		next, err = page.Next(ctx, cursor.NextPage{Position: strconv.AppendInt(nil, int64(last), 10)})
		return ids, next, err
	}

	ctx := context.Background()
	ids, next, err := listRows(ctx, "alice", []byte(`{"status":"open"}`))
	fmt.Println(ids, err)
	ids, _, err = listRows(ctx, "alice", fmt.Appendf(nil, `{"status":"open","cursor":%q}`, next))
	fmt.Println(ids, err)
	_, _, err = listRows(ctx, "alice", fmt.Appendf(nil, `{"status":"closed","cursor":%q}`, next))
	fmt.Println(err)
	// Output:
	// [1 2] <nil>
	// [3 4] <nil>
	// tripseal: invalid cursor
}
