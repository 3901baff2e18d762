// Package native has what native state tokens and native cursors share: the encoding of the fields in their records,
// and the sealing and opening of payloads.
package native
