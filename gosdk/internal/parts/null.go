// Package parts has what the adapter for the official SDK needs at several places: copies of arguments that no handler can
// change, a table of servers, tools that an option names but no list has, and values that JSON cannot write.
package parts

// HasNull reports whether a JSON value is null or holds a null, at any depth. A form
// field that the user left empty is absent, not null, so a handler does not expect a
// null. Drop an answer for which HasNull returns true: it is incomplete.
func HasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		for _, item := range v {
			if HasNull(item) {
				return true
			}
		}
	case map[string]any:
		for _, member := range v {
			if HasNull(member) {
				return true
			}
		}
	}
	return false
}
