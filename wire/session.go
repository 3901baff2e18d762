package wire

import (
	"net/http"
)

// session is the session of an older protocol revision that a request belongs to. The client holds a sealed id, and the
// server its own.
type session struct{ text, id string }

// openSession replaces the client's id of a session by the server's. It refuses the request and returns false if the id
// was not made for this user. A request that begins a session, or is of a revision without sessions, has none.
func (v *visit) openSession(header http.Header) bool {
	values := header[sessionHeader]
	delete(header, sessionHeader)
	switch {
	case len(values) > 1:
		v.refuse(http.StatusBadRequest, "a repeated Mcp-Session-Id")
		return false
	case len(values) == 1 && values[0] != "" && !isModern(header) &&
		(v.exchange == nil || v.exchange.Method != "initialize"):
		id, err := v.engine.sessions.Open(v.request.Context(), v.caller, values[0])
		if err != nil { // the boundary has logged why
			v.refuseQuietly(http.StatusNotFound)
			return false
		}
		v.session = session{values[0], id}
		if v.exchange != nil {
			v.exchange.inSession = true
		}
		header[sessionHeader] = []string{id}
	default:
		delete(header, resumeHeader) // only who opened a session may resume its streams
	}
	return true
}

// sealSession replaces the server's id of a session by a sealed one. An answer that repeats the request's id gets the
// client's own text, because clients compare them. It returns false if the id cannot be sealed.
func (v *visit) sealSession(header http.Header) bool {
	values := header[sessionHeader]
	switch {
	case len(values) == 0:
		return true
	case len(values) == 1 && values[0] == "":
		delete(header, sessionHeader)
		return true
	case len(values) > 1:
		return false
	case v.session.id != "" && values[0] == v.session.id:
		header[sessionHeader] = []string{v.session.text}
		return true
	}
	text, err := v.engine.sessions.Seal(v.request.Context(), v.caller, values[0])
	if err != nil {
		return false
	}
	header[sessionHeader] = []string{text}
	return true
}
