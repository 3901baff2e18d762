package leaky

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

const pageSize = 3

// position says which page a client wants: of which list, for which user, and at which cursor.
type position struct {
	list   string // the method of the list, or the id of the paged tool
	digest string // the digest of the tool's arguments without the cursor; "" for a list
	user   string
	cursor value
}

// page returns one page of a list, and the cursor of the next page, or "" if there is none.
func (s *Server) page(p position, all []any) (part []any, next string, f *fault) {
	offset, ok := s.offset(p)
	if !ok {
		return nil, "", &fault{Code: codeParams, Message: "Invalid cursor"}
	}
	start := min(max(offset, 0), len(all))
	end := min(start+pageSize, len(all))
	if end < len(all) {
		next = s.writeCursor(p, end)
	}
	return all[start:end], next, nil
}

func (s *Server) writeCursor(p position, offset int) string {
	if s.hole("unsigned-cursor") {
		return b64([]byte(strconv.Itoa(offset)))
	}
	return s.seal(record{Purpose: "cursor", Target: p.list, Digest: p.digest, User: p.user,
		Expires: s.Now().Add(lifetime).UnixMilli(), Offset: offset})
}

// offset checks the cursor of p, and returns the index at which its page starts. ok is false if
// the cursor is not accepted.
func (s *Server) offset(p position) (offset int, ok bool) {
	if p.cursor.kind == 0 {
		return 0, true
	}
	if !p.cursor.isString() || p.cursor.text == "" {
		return 0, false
	}
	if s.hole("unsigned-cursor") {
		text, err := base64.RawURLEncoding.DecodeString(p.cursor.text)
		offset, bad := strconv.Atoi(string(text))
		return offset, err == nil && bad == nil
	}
	if s.hole("cursor-numbers") && strings.Trim(p.cursor.text, "0123456789") == "" {
		offset, err := strconv.Atoi(p.cursor.text)
		return offset, err == nil
	}
	rec, why := s.unseal(p.cursor.text, "cursor")
	if why != "" || s.expired(rec) {
		return 0, false
	}
	userFits := rec.User == p.user || s.hole("cursor-shared-users")
	if rec.Purpose != "cursor" {
		return 0, userFits && s.hole("one-token")
	}
	listFits := rec.Target == p.list && rec.Digest == p.digest || s.hole("cursor-shared-lists")
	return rec.Offset, userFits && listFits
}

// without(name) copies an object, but leaves out all members of this name.
func (v value) without(name string) value {
	v.members = slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return m.name == name })
	return v
}

// answerStateless returns the result of a method that carries no state.
func (s *Server) answerStateless(method, user string, cursor value) (any, *fault) {
	result := map[string]any{"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
	if method == "server/discover" {
		result["supportedVersions"] = []string{version}
		result["serverInfo"] = map[string]any{"name": "leaky", "version": "1"}
		return result, nil
	}
	calls, ok := map[string]string{"tools/list": "tools/call", "prompts/list": "prompts/get",
		"resources/list": "resources/read"}[method]
	if !ok {
		return nil, &fault{status: 404, Code: codeMethod, Message: "Method not found"}
	}
	var all []any
	for _, t := range targets {
		if t.method == calls {
			all = append(all, t.listed())
		}
	}
	part, next, f := s.page(position{list: method, user: user, cursor: cursor}, all)
	result[strings.TrimSuffix(method, "/list")] = part
	if next != "" {
		result["nextCursor"] = next
	}
	return result, f
}

// listed returns the entry of a target in the list of tools, prompts or resources.
func (t *target) listed() any {
	properties, required := map[string]any{}, []string{}
	for _, p := range t.params {
		properties[p.name] = map[string]any{"type": p.kind}
		if p.required {
			required = append(required, p.name)
		}
	}
	entry := map[string]any{"name": t.name, "uri": t.name}
	if t.method == "tools/call" {
		entry["inputSchema"] = map[string]any{"type": "object", "properties": properties, "required": required}
	}
	return entry
}
