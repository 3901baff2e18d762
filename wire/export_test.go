package wire

// Marks returns how many calls an engine knows by a mark.
func Marks(e *Engine) (n int) {
	e.marks.Range(func(any, any) bool { n++; return true })
	return n
}
