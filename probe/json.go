package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
)

// WriteJSON writes the report as JSON, with everything that the run kept. The member "format" is a
// number. It changes when programs that read the old JSON cannot read the new JSON. Use WriteJSON for
// a report that a program reads.
func (r *Report) WriteJSON(w io.Writer) error {
	document := struct {
		Format int `json:"format"`
		Report
		Counts map[Verdict]int `json:"counts"`
	}{1, *r, r.Count()}
	// An empty list is written as [] and never as null.
	for _, list := range []*[]string{&document.Targets, &document.Cursors, &document.Notes} {
		*list = append([]string{}, *list...)
	}
	document.Results = append([]Result{}, r.Results...)
	for i := range document.Results {
		result := &document.Results[i]
		if result.Outcomes == nil {
			result.Outcomes = map[string]int{}
		}
		result.Findings = append([]Finding{}, result.Findings...)
		for i := range result.Findings {
			result.Findings[i].Exchanges = append([]Exchange{}, result.Findings[i].Exchanges...)
		}
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	// Some characters can control a terminal, but encoding/json does not escape them. This loop
	// escapes them. They occur only in JSON strings, so a reader decodes each escape to the same
	// character.
	var out bytes.Buffer
	for _, char := range string(append(text, '\n')) {
		switch {
		case char == '\n' || !moves(char):
			out.WriteRune(char)
		case char > 0xffff:
			high, low := utf16.EncodeRune(char)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, char)
		}
	}
	return writeAll(w, &out)
}
