// Package probe attacks the requestState and the cursors of an MCP server, and reports which
// attacks got through. The server may be written in any language. The package uses no SDK: it
// writes the messages of protocol revision 2026-07-28 itself, so that it can send what no
// client of an SDK would send.
//
// Use this package to attack your server in its own Go tests. The command tripseal probe does
// the same from a shell. The calls have real effects on the server, so attack a test system.
package probe
