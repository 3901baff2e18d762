// Package native is what states and cursors share: the pieces of a record, and the
// way from a payload to its text and back.
package native
