// Package probe attacks the requestState and the cursors of an MCP server, in any language,
// and reports what got through. It speaks the protocol by itself, revision 2026-07-28, so
// that it can send what no client of an SDK would send.
package probe
