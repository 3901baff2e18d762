package probe

import (
	"encoding/json"
	"io"
)

func Formats() []string { return []string{"text", "json"} }
func (r *Report) Write(w io.Writer, format string, colour bool) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
