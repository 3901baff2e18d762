// Package keyfile reads, checks and writes the file that holds the keys of a ring.
// docs/operations.md describes the format.
package keyfile

import (
	"bytes"
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

// Revocation remembers a key whose secret was removed from the file.
type Revocation struct {
	ID        tripseal.KeyID
	SealsFrom time.Time // when the key began to seal
	At        time.Time
}

// Problem says why a file that could be read cannot be used.
type Problem struct{ error }

func (p *Problem) Unwrap() error { return p.error }

func problem(err error) error {
	if err == nil {
		return nil
	}
	return &Problem{err}
}

// Parse reads a document from the text of a file. An error is a *[Problem]. It names lines
// and fields but repeats nothing of the text: if the path is wrong, the text may be a
// different secret.
func Parse(text []byte) (*Document, error) {
	d, err := parse(text)
	if err != nil {
		return nil, problem(err)
	}
	return d, nil
}

func parse(text []byte) (*Document, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxSize)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the file is empty")
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
	return d, d.checkUnique()
}

// checkUnique returns an error if two lines have the same id or setting, or if there
// are too many keys.
func (d *Document) checkUnique() error {
	seen := make(map[tripseal.KeyID]int)
	set := make(map[string]int)
	keys := 0
	for i := range d.lines {
		var id tripseal.KeyID
		switch l := &d.lines[i]; {
		case l.key != nil:
			id = l.key.ID
			keys++
		case l.revoked != nil:
			id = l.revoked.ID
		case l.setting != "":
			if first, ok := set[l.setting]; ok {
				return fmt.Errorf("lines %d and %d both say the %s: keep the larger", first, i+2, l.setting)
			}
			set[l.setting] = i + 2
			continue
		default:
			continue
		}
		if first, ok := seen[id]; ok {
			return fmt.Errorf("lines %d and %d are both about %s: a key may be in the file only once, and not at all after it is revoked",
				first, i+2, id)
		}
		seen[id] = i + 2
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

// Find returns the key with this id, or nil if there is none. To find many keys, use
// [Document.ByID].
func (d *Document) Find(id tripseal.KeyID) *Key {
	for _, l := range d.lines {
		if l.key != nil && l.key.ID == id {
			return l.key
		}
	}
	return nil
}

// FindRevoked returns the revocation of the key with this id, or nil if there is none.
func (d *Document) FindRevoked(id tripseal.KeyID) *Revocation {
	for _, l := range d.lines {
		if l.revoked != nil && l.revoked.ID == id {
			return l.revoked
		}
	}
	return nil
}

// ByID returns the keys and the revocations of the document in two maps, by the id of the key.
func (d *Document) ByID() (keys map[tripseal.KeyID]*Key, revoked map[tripseal.KeyID]*Revocation) {
	keys, revoked = make(map[tripseal.KeyID]*Key), make(map[tripseal.KeyID]*Revocation)
	for _, l := range d.lines {
		switch {
		case l.key != nil:
			keys[l.key.ID] = l.key
		case l.revoked != nil:
			revoked[l.revoked.ID] = l.revoked
		}
	}
	return keys, revoked
}

// Room returns the lifetime and the skew that the file sets. A value that the file does not
// set is zero.
func (d *Document) Room() (room Room) {
	for _, l := range d.lines {
		switch l.setting {
		case settingLifetime:
			room.TTL = l.value
		case settingSkew:
			room.Skew = l.value
		}
	}
	return room
}

// Raise sets the file's lifetime to room.TTL if that is larger, and the file's skew to
// room.Skew if that is larger.
func (d *Document) Raise(room Room) {
	said := d.Room()
	if room.Skew > said.Skew {
		d.set(settingSkew, room.Skew)
	}
	if room.TTL > said.TTL {
		d.set(settingLifetime, room.TTL)
	}
}

func (d *Document) set(name string, value time.Duration) {
	for i := range d.lines {
		if d.lines[i].setting == name {
			d.lines[i].value = value
			return
		}
	}
	d.lines = slices.Insert(d.lines, 0, line{setting: name, value: value})
}

// Add appends a key to the document. It returns an error if the document already has a key
// with that id, or would have too many keys.
func (d *Document) Add(k *Key) error {
	d.lines = append(d.lines, line{key: k})
	return problem(d.checkUnique())
}

// remove removes the keys and revocations for which the function isOld returns true.
func (d *Document) remove(isOld func(*Key, *Revocation) bool) {
	d.lines = slices.DeleteFunc(d.lines, func(l line) bool {
		return (l.key != nil || l.revoked != nil) && isOld(l.key, l.revoked)
	})
}
