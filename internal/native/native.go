// Package native marks the parts of this module that may be lent pooled memory.
package native

// Codec is a codec of this module: it keeps nothing of what it is given. No other
// module can implement it.
type Codec interface{ Native(Mark) }

// Mark is a type that no other module has.
type Mark struct{}
