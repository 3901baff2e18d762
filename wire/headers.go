package wire

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
)

// The headers that a door reads or changes.
const (
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	resumeHeader  = "Last-Event-Id"
)

// maxHeaderLines is how many header lines a request may have. Short lines take much more memory than their length.
const maxHeaderLines = 200

func tooManyLines(header http.Header) bool {
	lines := 0
	for _, values := range header {
		lines += len(values)
	}
	return lines > maxHeaderLines
}

// removedHeaders lists the request headers that the server does not get: headers that ask for an answer that could not
// be sealed, headers that would be wrong once the body has changed, and headers that the door has dealt with itself.
var removedHeaders = map[string]bool{
	"Accept-Encoding": true, "Range": true, "If-Range": true, "If-None-Match": true, "If-Modified-Since": true,
	"Digest": true, "Content-Digest": true, "Repr-Digest": true, "Content-Md5": true,
	"Content-Encoding": true, "Content-Length": true, "Expect": true, "Te": true, "Trailer": true,
}

// mediaType returns the media type of a body. It returns "" if the header Content-Type is missing, repeated or
// malformed, or says that the text is not in UTF-8.
func mediaType(header http.Header) string {
	values := header["Content-Type"]
	if len(values) != 1 {
		return ""
	}
	if values[0] == "application/json" || values[0] == "text/event-stream" { // the usual texts, without an allocation
		return values[0]
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	charset, ok := parameters["charset"]
	if err != nil || ok && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return media
}

func isEncoded(header http.Header) bool {
	for _, value := range header["Content-Encoding"] {
		if value != "" && !strings.EqualFold(value, "identity") {
			return true
		}
	}
	return false
}

// removeDigests removes the headers that are wrong once the body of an answer has changed.
func removeDigests(header http.Header) {
	for _, name := range []string{"Digest", "Content-Digest", "Repr-Digest", "Content-Md5", "Etag"} {
		header.Del(name)
	}
}

// headersAgree reports whether the headers of a call give the same method and name as its message. It ignores missing
// headers. For requests that are not calls, it compares nothing and returns true, because clients send some of these
// requests with headers that differ.
func headersAgree(header http.Header, x *Exchange) bool {
	if x.kind != call {
		return true
	}
	for _, method := range header[methodHeader] {
		if method != x.Method {
			return false
		}
	}
	for _, name := range header[nameHeader] {
		if encoded, ok := strings.CutPrefix(name, "=?base64?"); ok && strings.HasSuffix(encoded, "?=") {
			text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?="))
			if err != nil {
				return false
			}
			name = string(text)
		}
		if name != x.Target {
			return false
		}
	}
	return true
}

// isModern reports whether the header says that the request is of revision 2026-07-28 or later, which has no sessions.
func isModern(header http.Header) bool {
	const modern = "2026-07-28"
	version := header.Get(versionHeader)
	return len(version) == len(modern) && version >= modern
}

// session is the session of an older protocol revision that a request belongs to. The client holds a sealed id, and the
// server its own.
type session struct{ text, id string }

// openSession replaces the client's id of a session by the server's. It refuses the request and returns false if the id
// was not made for this user. A request that begins a session, or is of a revision without sessions, has none.
func (v *visit) openSession(header http.Header, x *Exchange) bool {
	values := header[sessionHeader]
	delete(header, sessionHeader)
	switch {
	case len(values) > 1:
		v.refuse(http.StatusBadRequest, "a repeated Mcp-Session-Id")
		return false
	case len(values) == 1 && values[0] != "" && !isModern(header) &&
		(x == nil || x.Method != "initialize"):
		id, err := v.engine.sessions.Open(v.request.Context(), v.caller, values[0])
		if err != nil { // the boundary has logged why
			v.refuse(http.StatusNotFound, "")
			return false
		}
		v.session = session{values[0], id}
		if x != nil {
			x.inSession = true
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
	case len(values) > 1:
		return false
	case len(values) == 0 || values[0] == "":
		delete(header, sessionHeader)
		return true
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
