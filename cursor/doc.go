// Package cursor seals pagination cursors. A cursor tells the server where the next page
// begins; the client keeps it and sends it back, and the server stores nothing.
//
//	cursors, err := cursor.New(cursor.Config{Keys: ring, Audience: "rows.example.com"})
//	…
//	page, err := cursors.Open(ctx, request, token) // "" is the first page
//	rows := query(page.Position())
//	next, err := page.Next(ctx, cursor.NextPage{Position: last(rows)})
//
// A cursor opens only for the request that it was issued for: the same tool or
// list, the same caller, the same arguments, the same service. It cannot be read,
// changed or made by a client, and it expires. It carries a page number and up to
// 256 bytes of position, in at most 512 characters.
//
// If the cursor is one of a tool's arguments, take it out of [tripseal.Request.Arguments]
// and keep the other arguments there. If you leave the cursor in, no second page opens.
// If you leave the other arguments out, a cursor works for any arguments. The example of
// this package shows such a tool.
//
// With [Pages], the position is a Go value instead of bytes.
package cursor
