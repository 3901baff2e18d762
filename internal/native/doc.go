// Package native holds what states and cursors share: the fields of a record, and
// how a payload becomes a text and a text a payload.
package native
