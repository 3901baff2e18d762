package keyfile

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
)

const (
	never      = "never"
	timeLayout = "2006-01-02T15:04:05.999Z07:00"
)

// The names of the fields in the lines of keys and revocations.
const (
	fieldMade       = "made"
	fieldSealsFrom  = "seals-from"
	fieldOpensUntil = "opens-until"
	fieldSecret     = "secret"
	fieldAt         = "at" // when a key was revoked
)

// The names of settings. A setting is a line with a name and a duration.
const (
	settingLifetime = "lifetime" // how long a token of a service lives at most
	settingSkew     = "skew"     // how far the clock of a replica may be off

	// MaxTTL is the maximum of settingLifetime, and MaxSkew is the maximum of settingSkew.
	MaxTTL  = 10 * 365 * 24 * time.Hour
	MaxSkew = time.Hour
)

// parseLine reads one line between the header and the footer.
func parseLine(text string) (line, error) {
	words := strings.Fields(text)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return line{comment: strings.TrimRight(text, " \t\r")}, nil
	}
	switch words[0] {
	case "key":
		id, fields, err := parseFields(words[1:], fieldMade, fieldSealsFrom, fieldOpensUntil, fieldSecret)
		if err != nil {
			return line{}, err
		}
		key, err := newKey(id, fields)
		if err != nil {
			return line{}, fmt.Errorf("key %s: %w", id, err)
		}
		return line{key: key}, nil
	case "revoked":
		id, fields, err := parseFields(words[1:], fieldSealsFrom, fieldAt)
		if err != nil {
			return line{}, err
		}
		sealsFrom, err := parseTime(fieldSealsFrom, fields[fieldSealsFrom])
		at, err2 := parseTime(fieldAt, fields[fieldAt])
		return line{revoked: &Revocation{id, sealsFrom, at}}, cmp.Or(err, err2)
	case settingLifetime:
		return parseSetting(words, MaxTTL)
	case settingSkew:
		return parseSetting(words, MaxSkew)
	case footer:
		return line{}, errors.New(`"end" is not on the last line`)
	}
	// An unknown line may be important, so it is an error.
	return line{}, errors.New(`the line begins with neither "key" nor "revoked" nor "lifetime" nor "skew" nor #: ` +
		"it is wrong, or of a newer release")
}

func parseSetting(words []string, most time.Duration) (line, error) {
	if len(words) == 2 {
		if value, err := time.ParseDuration(words[1]); err == nil && value >= time.Millisecond && value <= most {
			return line{setting: words[0], value: value}, nil
		}
	}
	return line{}, fmt.Errorf("%s is not one duration such as 90m or 2h, of at most %s", words[0], FormatDuration(most))
}

// FormatDuration returns a duration without units that are 0: 2h, not 2h0m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// parseFields reads a key id, and then each of the named fields exactly once, in any order.
func parseFields(words []string, names ...string) (id tripseal.KeyID, fields map[string]string, err error) {
	if len(words) == 0 {
		return id, nil, errors.New("the id is missing")
	}
	raw, _ := hex.DecodeString(words[0])
	if copy(id[:], raw); id.String() != words[0] {
		return id, nil, errors.New("the second word is not an id: eight digits of lower-case hexadecimal")
	}
	fields = make(map[string]string, len(names))
	for i, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if _, twice := fields[name]; !ok || twice || !slices.Contains(names, name) {
			return id, nil, fmt.Errorf("key %s: word %d is not one of %s=…, each once", id, i+3, strings.Join(names, "=…, "))
		}
		fields[name] = value
	}
	for _, name := range names {
		if fields[name] == "" {
			return id, nil, fmt.Errorf("key %s: %s is missing", id, name)
		}
	}
	return id, fields, nil
}

func newKey(id tripseal.KeyID, fields map[string]string) (*Key, error) {
	k := &Key{ID: id}
	var errs [4]error
	k.Made, errs[0] = parseTime(fieldMade, fields[fieldMade])
	k.SealsFrom, errs[1] = parseTime(fieldSealsFrom, fields[fieldSealsFrom])
	if fields[fieldOpensUntil] != never {
		k.OpensUntil, errs[2] = parseTime(fieldOpensUntil, fields[fieldOpensUntil])
	}
	k.Secret, errs[3] = parseSecret(fields[fieldSecret])
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	if k.Secret.scheme != "" {
		return k, nil
	}
	return k, k.checkSecret(k.Secret.key)
}

// checkSecret returns an error if a secret is not that of k.
func (k *Key) checkSecret(secret tripseal.Key) error {
	if secret.ID() != k.ID {
		return fmt.Errorf("the secret is that of another key, %s", secret.ID())
	}
	return nil
}

func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if t = t.UTC().Truncate(time.Millisecond); err != nil || t.Year() < 2000 || t.Year() > 9000 {
		return time.Time{}, fmt.Errorf("%s is not a time such as 2026-07-28T09:30:00Z (opens-until may also be never)", field)
	}
	return t, nil
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return never
	}
	return t.UTC().Format(timeLayout)
}

func (l line) String() string {
	switch {
	case l.key != nil:
		k := l.key
		return fmt.Sprintf("key %s %s=%s %s=%s %s=%s %s=%s", k.ID, fieldMade, formatTime(k.Made),
			fieldSealsFrom, formatTime(k.SealsFrom), fieldOpensUntil, formatTime(k.OpensUntil), fieldSecret, k.Secret.reveal())
	case l.revoked != nil:
		return fmt.Sprintf("revoked %s %s=%s %s=%s", l.revoked.ID,
			fieldSealsFrom, formatTime(l.revoked.SealsFrom), fieldAt, formatTime(l.revoked.At))
	case l.setting != "":
		return l.setting + " " + FormatDuration(l.value)
	}
	return l.comment
}
