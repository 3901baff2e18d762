// Package keyfile reads, checks and writes the file that holds the keys of a ring.
// docs/operations.md describes the format.
package keyfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
)

const (
	header = "tripseal-keys 1"
	footer = "end"
	// MaxSize and MaxKeys are how many bytes and how many keys a file may have.
	MaxSize = 1 << 20
	MaxKeys = 1000
)

// Document is the contents of a file of keys, with its comments in their places.
type Document struct {
	lines []line
}

// line is a line of the file: a key, a revocation, a setting, a comment, or an empty line.
type line struct {
	key     *Key
	revoked *Revocation
	setting string // "lifetime" or "skew", or "" if the line is not a setting
	value   time.Duration
	comment string
}

// Key is a key in the file, with its dates.
type Key struct {
	ID         tripseal.KeyID
	Made       time.Time
	SealsFrom  time.Time
	OpensUntil time.Time // the key opens tokens only before this time; zero means that it opens them without end
	Secret     Secret
}

// Revocation says that a key was revoked. Its line stays in the file for good, in place of the key's.
type Revocation struct {
	ID        tripseal.KeyID
	SealsFrom time.Time // when the key began to seal
	At        time.Time
}

// Parse reads a document from the text of a file. An error names lines and fields but
// repeats nothing of the text: if the path is wrong, the text may be a different secret.
func Parse(text []byte) (*Document, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxSize)
	}
	rows := strings.Split(strings.TrimRight(string(text), " \t\r\n"), "\n")
	if strings.Join(strings.Fields(rows[0]), " ") != header {
		return nil, fmt.Errorf("the first line is not %q: this is not a file of keys, or one of a newer release", header)
	}
	if strings.TrimSpace(rows[len(rows)-1]) != footer {
		return nil, errors.New(`the last line is not "end": the file was cut, or is still being written`)
	}
	d := new(Document)
	for i, row := range rows[1 : len(rows)-1] {
		parsed, err := parseLine(row)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		d.lines = append(d.lines, parsed)
	}
	if err := d.checkUnique(); err != nil {
		return nil, err
	}
	return d, nil
}

// checkUnique returns an error if two lines have the same id or setting, or if there
// are too many keys.
func (d *Document) checkUnique() error {
	seen := make(map[string]int) // the number of the line about each key and each setting
	keys := 0
	for i, l := range d.lines {
		name := l.setting
		switch {
		case l.key != nil:
			name = l.key.ID.String()
			keys++
		case l.revoked != nil:
			name = l.revoked.ID.String()
		case name == "":
			continue
		}
		if first, ok := seen[name]; ok {
			return fmt.Errorf("lines %d and %d are both about %s: keep one, and of a revoked key the line that revokes it",
				first, i+2, name)
		}
		seen[name] = i + 2
	}
	if keys > MaxKeys {
		return fmt.Errorf("the file has %d keys, more than %d", keys, MaxKeys)
	}
	return nil
}

// Bytes returns the document as the text of a file.
func (d *Document) Bytes() []byte {
	var b strings.Builder
	b.WriteString(header + "\n")
	for _, l := range d.lines {
		b.WriteString(l.String() + "\n")
	}
	b.WriteString(footer + "\n")
	return []byte(b.String())
}

// Keys returns the keys in the order of the file.
func (d *Document) Keys() (keys []*Key) {
	for _, l := range d.lines {
		if l.key != nil {
			keys = append(keys, l.key)
		}
	}
	return keys
}

// Revoked returns the revocations in the order of the file.
func (d *Document) Revoked() (revoked []Revocation) {
	for _, l := range d.lines {
		if l.revoked != nil {
			revoked = append(revoked, *l.revoked)
		}
	}
	return revoked
}

// Find returns the key with this id, or nil if there is none.
func (d *Document) Find(id tripseal.KeyID) *Key {
	for _, l := range d.lines {
		if l.key != nil && l.key.ID == id {
			return l.key
		}
	}
	return nil
}

// Room returns the lifetime and the skew that the file sets. A value that the file does not
// set is zero.
func (d *Document) Room() (room Room) {
	for _, l := range d.lines {
		if l.setting == settingLifetime {
			room.TTL = l.value
		} else if l.setting == settingSkew {
			room.Skew = l.value
		}
	}
	return room
}

// Raise sets the file's lifetime to room.TTL if that is larger, and the file's skew to
// room.Skew if that is larger.
func (d *Document) Raise(room Room) {
	said := d.Room()
	d.raise(settingSkew, said.Skew, room.Skew)
	d.raise(settingLifetime, said.TTL, room.TTL)
}

func (d *Document) raise(name string, from, to time.Duration) {
	if to <= from {
		return
	}
	i := slices.IndexFunc(d.lines, func(l line) bool { return l.setting == name })
	if i < 0 {
		i, d.lines = 0, slices.Insert(d.lines, 0, line{})
	}
	d.lines[i] = line{setting: name, value: to}
}

// Add appends a key to the document.
func (d *Document) Add(k *Key) { d.lines = append(d.lines, line{key: k}) }
