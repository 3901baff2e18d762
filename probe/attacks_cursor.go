package probe

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// cursorAttacks are the attacks on cursors, the positions in lists.
var cursorAttacks = []Attack{
	{
		ID: "cursor-changed", Title: "One character of a cursor changed", Severity: Medium, Section: pagination,
		Means:  "A client moves to positions that the server did not give it.",
		Fix:    "Seal cursors as you seal states.",
		AtMost: 70, needs: needCursor, try: func(t *trial) {
			t.eachBook(func(b book, cursor string) (list []member) {
				for i := range cursor {
					list = append(list, member{fmt.Sprintf("character %d of %d changed", i+1, len(cursor)), changedAt(cursor, i)})
				}
				return spread(list, 64)
			})
		},
	},
	{
		ID: "cursor-made-up", Title: "A made-up cursor", Severity: Medium, Section: pagination,
		Means:  "A client chooses a position by itself, or a broken cursor silently starts over.",
		Fix:    "Seal cursors as you seal states, and answer -32602 to one that is not yours.",
		AtMost: 30, needs: needCursor, try: func(t *trial) {
			t.eachBook(func(b book, cursor string) (list []member) {
				texts := []string{madeUp, "0", "1", "2", "10", "page2", "AAAA", "{}", "null", `{"offset":1}`, "a"}
				for _, text := range []string{"0", "1", "2", "10", `{"offset":1}`} {
					texts = append(texts, base64.StdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
				}
				for _, text := range texts {
					if text != cursor {
						list = append(list, member{"the text " + quoted(text), text})
					}
				}
				return list
			})
		},
	},
	{
		ID: "cursor-other-list", Title: "A cursor of another list", Severity: Low, Section: pagination,
		Means:  "A position in one list, or for one set of arguments, is taken for a position in another.",
		Fix:    "Seal the list and the arguments into the cursor.",
		AtMost: 32, needs: needCursor, try: cursorOtherList,
	},
	{
		ID: "cursor-other-user", Title: "A cursor of another user", Severity: Medium, Section: pagination,
		Means:  "A cursor that leaked shows another user's position, and works for whoever holds it.",
		Fix:    "Seal the user into the cursor, unless the list is the same for everybody.",
		AtMost: 8, needs: needCursor | needUsers, try: cursorOtherUser,
	},
	{
		ID: "crossed", Title: "A cursor as a state, and a state as a cursor", Severity: High, Section: integrity,
		Means:  "What was sealed for one purpose is accepted for another.",
		Fix:    "Seal the purpose too, or use another key for each.",
		AtMost: 10, Honest: 1, needs: needCursor | needState, try: crossed,
	},
}

// book is something that is read page by page: a list of the protocol, or a tool.
type book struct {
	method string
	tool   *Target // nil for a list
}

func (b book) String() string {
	if b.tool != nil {
		return b.tool.String()
	}
	return b.method
}

// target returns the book as a target, for reports.
func (b book) target() Target {
	if b.tool != nil {
		return *b.tool
	}
	return Target{Method: b.method, Name: "list"}
}

// page returns the request for a page of the book. An empty cursor means the first page.
func (b book) page(cursor string, as user) message {
	if b.tool == nil {
		m := message{method: b.method, as: as}.with("_meta", meta(canEverything))
		if cursor != "" {
			m = m.with("cursor", quoted(cursor))
		}
		return m
	}
	arguments, _ := members(b.tool.arguments())
	if cursor != "" {
		arguments = append(slices.Clone(arguments), member{`"cursor"`, quoted(cursor)})
	}
	return b.tool.call(object(arguments)).sentBy(as)
}

// nextCursor returns the cursor for the following page, from the reply r. It returns "" if r has no
// cursor.
func (b book) nextCursor(r *reply) string {
	result := r.message.Result
	if result == nil || r.outcome() != complete {
		return ""
	}
	if b.tool == nil && result.NextCursor != nil {
		return *result.NextCursor
	}
	var page struct{ NextCursor string }
	if b.tool != nil && json.Unmarshal(result.StructuredContent, &page) == nil {
		return page.NextCursor
	}
	return ""
}

// lists are the methods of the protocol that return a list.
var lists = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

// findPages finds the lists and tools that issue a cursor, and adds them to p.pages.
func (p *probe) findPages() {
	var all []book
	for _, method := range lists {
		all = append(all, book{method: method})
	}
	for i := range p.Paged {
		all = append(all, book{method: "tools/call", tool: &p.Paged[i]})
	}
	for _, b := range all {
		if p.ended == nil && b.nextCursor(p.send(b.page("", firstUser)).reply) != "" {
			p.pages = append(p.pages, b)
		}
	}
}

// walk reads the first two pages of a book. It returns the cursor that leads to the second page.
func (p *probe) walk(b book, as user) (cursor string, err error) {
	first := p.send(b.page("", as)).reply
	if cursor = b.nextCursor(first); cursor == "" {
		return "", fmt.Errorf("%s gave no cursor: %s", b, first)
	}
	if second := p.send(b.page(cursor, as)).reply; second.outcome() != complete {
		return "", fmt.Errorf("%s: an honest cursor was refused: %s", b, second)
	}
	return cursor, nil
}

// eachBook attacks each book: it sends other texts instead of a genuine cursor. The function
// makeTexts returns these texts as members: the name describes the text, and the value is the
// text itself.
func (t *trial) eachBook(makeTexts func(b book, cursor string) []member) {
	for _, b := range t.pages {
		cursor, err := t.walk(b, firstUser)
		if err != nil {
			t.unclear(err)
			return
		}
		found := 0
		for _, other := range makeTexts(b, cursor) {
			if found == enough || t.ended != nil {
				break
			}
			if t.tryCursor(b, other.name, other.value, firstUser) {
				found++
			}
		}
	}
}

// tryCursor asks for a page with a cursor that the server must refuse. If the server does not
// refuse the cursor, tryCursor records a finding and returns true.
func (t *trial) tryCursor(b book, what, cursor string, as user) bool {
	sent := t.send(b.page(cursor, as))
	t.result.Outcomes[sent.reply.outcome().String()]++
	if sent.reply.outcome() != complete || t.Refusal != "" && strings.Contains(sent.reply.shown(), t.Refusal) {
		return false
	}
	t.recordFinding(b.target(), what, sent)
	return true
}

func cursorOtherList(t *trial) {
	tried := false
	for _, from := range t.pages {
		cursor, err := t.walk(from, firstUser)
		if err != nil {
			t.unclear(err)
			return
		}
		for _, to := range spread(t.pages, 12) {
			if from.String() != to.String() {
				tried = true
				t.tryCursor(to, "with the cursor of "+from.String(), cursor, firstUser)
			}
		}
		if from.tool == nil {
			continue
		}
		for _, c := range spread(t.changedArguments(*from.tool), 12) {
			other := *from.tool
			other.Arguments = c.value
			b := book{method: from.method, tool: &other}
			if t.send(b.page("", firstUser)).reply.outcome() != complete {
				continue
			}
			tried = true
			t.tryCursor(b, "with the cursor for other arguments: "+c.name, cursor, firstUser)
			break
		}
	}
	if !tried {
		t.skip("it needs two lists, or a paged tool with arguments")
	}
}

func cursorOtherUser(t *trial) {
	for _, b := range t.pages {
		cursor, err := t.walk(b, firstUser)
		if err != nil {
			t.unclear(err)
			return
		}
		if _, err := t.walk(b, otherUser); err != nil {
			t.unclear(fmt.Errorf("an honest request of the other user fails: %w", err))
			return
		}
		sent := t.send(b.page(cursor, otherUser))
		t.result.Outcomes[sent.reply.outcome().String()]++
		switch result := sent.reply.message.Result; {
		case sent.reply.outcome() != complete:
		case result.CacheScope == "public":
			t.inform(b.target(), "the list is public, so its cursors are not of one user", sent)
		default:
			t.recordFinding(b.target(), "sent by the other user", sent)
		}
	}
}

func crossed(t *trial) {
	for _, target := range t.targets() {
		f, err := t.mint(target)
		if err != nil {
			t.unclear(err)
			return
		}
		for _, b := range t.pages {
			cursor, err := t.walk(b, firstUser)
			if err != nil {
				t.unclear(err)
				return
			}
			if sent := t.tell(f.retry.with("requestState", quoted(cursor))); t.through(f, sent.reply) {
				t.recordFinding(target, "with the cursor of "+b.String()+" as its state", sent)
			}
			t.tryCursor(b, "with the state of "+target.String()+" as its cursor", f.state, firstUser)
		}
	}
}
