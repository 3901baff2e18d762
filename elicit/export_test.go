package elicit

// WordingOf returns the text that stands for a question in a state.
func WordingOf(q Question) string { return string(q.wording()) }

// Reads reports whether a text is a state, and returns what is written when nothing has changed.
func Reads(text string) (again string, ok bool) {
	m, ok := readMemory(text)
	if !ok {
		return "", false
	}
	return m.text(), true
}
