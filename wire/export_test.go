package wire

import "net/http"

// BudgetUsed returns how many bytes the messages of a door's requests use now.
func BudgetUsed(handler http.Handler) int64 {
	b := handler.(*door).budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// IsPlainAnswer reports whether the engine passes this answer without reading it whole.
func (x *Exchange) IsPlainAnswer(message string) bool { return x.isPlainAnswer([]byte(message)) }

// Answered reports whether Seal has seen the answer to the client's request.
func (x *Exchange) Answered() bool { return x.done }

// Marks returns how many calls an engine knows by a mark.
func Marks(e *Engine) (n int) {
	e.marks.Range(func(any, any) bool { n++; return true })
	return n
}
