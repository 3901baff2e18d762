// Package texts tests that docs/messages.md explains every text that a client or a log shows.
package texts

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/docs/messages.md"
)

// TestEveryTextHasARow checks that docs/messages.md explains every text that a client or a log
// shows, so that whoever searches the page for a text finds it.
func TestEveryTextHasARow(t *testing.T) {
	rows := readPage(t)
	texts, _ := extract(t, root)
	known := 0
	for text := range texts {
		text = searchable(text)
		if !strings.Contains(text, " ") || unseen[text] {
			continue // the test assumes that a single word is only a part of a longer text
		}
		if known++; !strings.Contains(rows, text) {
			t.Errorf("docs/messages.md does not explain %q", text)
		}
	}
	if known < 400 {
		t.Errorf("only %d texts were found in the sources", known)
	}
}

// unseen has texts that the extractor finds, but that neither a client nor a server's log shows.
var unseen = map[string]bool{
	"a resource":  true, // a part of other texts, in place of the name of a resource
	"unknown key": true, // the log shows another text in its place, with the id of the key

	// The log shows only the type of these errors.
	"cannot derive keys": true, "cannot use AES": true, "cannot use AES-GCM": true,

	// Only commands that write a file of keys show these.
	"write in its folder": true, "make the file": true, "keep the file's owner: only they and root can change it": true, "sync its folder": true,
	"another command is changing the file": true, "open its folder": true, "open the file": true, "set the mode": true,

	// Some of these are parts of the texts "cannot …: …" and "the secret is …". The others are
	// errors that cannot happen.
	"read the file": true, "tripseal: not the text of a key": true, "tripseal: cannot derive the key id": true, "tripseal: a secret has … to … bytes, this one has": true,
	"tripseal: a secret whose bytes are all the same: was it ever filled? make a key with tripseal keys new --print, or tripseal.GenerateKey().Reveal": true,

	// Constructors return these errors. A file of keys with one of these mistakes is refused
	// earlier.
	"tripseal: a ring needs at least one key; make a key with tripseal keys new --print, or tripseal.GenerateKey().Reveal": true,
	"tripseal: key … of the ring is empty":                                           true,
	"tripseal: key … of the ring":                                                    true,
	"tripseal: keys … and … of the ring have one id, …: drop one, or make a new key": true,
}

// TestEveryRowHasAText checks that the code still has every text that docs/messages.md explains.
func TestEveryRowHasAText(t *testing.T) {
	texts, every := extract(t, root)
	maps.Copy(every, texts) // also add the texts that extract joined with named constants
	for status := 400; status < 600; status++ {
		every[http.StatusText(status)] = true
	}
	var all strings.Builder
	for text := range every {
		all.WriteString(verb.ReplaceAllString(text, "…") + "\n")
	}
	rows := row.FindAllStringSubmatch(readPage(t), -1)
	if len(rows) < 400 {
		t.Errorf("the page has only %d rows", len(rows))
	}
	for _, cells := range rows {
		for part := range strings.FieldsFuncSeq(cells[1], func(r rune) bool { return r == '…' || r == ':' }) {
			part = strings.Trim(part, " ;,.")
			if strings.Count(part, " ") > 1 && !strings.Contains(all.String(), part) && !foreign[part] {
				t.Errorf("nothing says %q, which is a part of %q", part, cells[1])
			}
		}
	}
}

// foreign has texts of the page that the sources do not have in this form.
var foreign = map[string]bool{
	"illegal base64 data at input byte":   true, // a text of mcp-go
	"cannot read the file":                true, // made with "cannot %s"
	"the secret is not the text of a key": true, // made of "the secret is " and an error without the prefix "tripseal: "
}

// row finds the first cell of a row.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// readPage returns the page as its readers see it.
func readPage(t *testing.T) string {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), `\|`, "|")
}

var verb = regexp.MustCompile(`%[.0-9]*[a-zA-Z]`)

// searchable returns a text as the page has it, with … in place of what differs each time.
func searchable(text string) string {
	return strings.Trim(verb.ReplaceAllString(text, "…"), " …:;,.()\n")
}
