package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// The model checks that replicas do what the table in docs/operations.md, "Which tokens still
// open", says. The clocks of the replicas differ. The replicas get each version of a file at
// random times, are restarted, and also get older versions and versions that somebody edited.
// Meanwhile, tokens are sealed and opened.
//
// In fact all replicas read the same clock, that of the test. To simulate a clock that is off, the
// model shifts the dates in the file that a replica gets.

const (
	defaultSteps  = 100_000                // make model takes a million
	modelSteps    = "TRIPSEAL_MODEL_STEPS" // the variable that replaces the default number of steps
	modelSeed     = "TRIPSEAL_MODEL_SEED"
	modelLifetime = time.Hour
	modelSkew     = time.Minute
)

func TestModelOfRotation(t *testing.T) {
	if strings.Contains(os.Getenv("GODEBUG"), "fips140=only") {
		t.Skip("random numbers of FIPS 140 need a clock that runs")
	}
	steps := number(t, modelSteps, defaultSteps)
	seed := number(t, modelSeed, 1)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(400 * 24 * time.Hour) // dates before 2000 are refused
		m := newModel(t, seed)
		for m.step = range steps {
			m.next()
			if t.Failed() {
				t.Fatalf("step %d; repeat with %s=%d %s=%d", m.step, modelSeed, seed, modelSteps, m.step+1)
			}
		}
		m.report(steps)
	})
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// model simulates the fleet, the operator, and the users who hold tokens.
type model struct {
	*testing.T
	random   *rand.Rand
	step     int
	replicas []*replica
	versions []*version             // the versions that the operator made, oldest first
	since    map[tripseal.KeyID]int // the number of the first version with the key
	tokens   []token
	saw      map[string]int // how often each kind of step or result occurred
}

// version is one version of the file.
type version struct {
	*keyfile.Document
	number int // -1 if somebody edited the file by hand
	keys   map[tripseal.KeyID]*keyfile.Key
	gone   map[tripseal.KeyID]keyfile.Revocation
	froms  []time.Time              // when each key begins to seal, in order; revoked keys included
	texts  map[time.Duration][]byte // the text for each offset of a replica's clock
}

// replica is one member of the fleet, with what the model knows about it.
type replica struct {
	offset time.Duration // of its clock
	path   string
	disk   *version // the file that it reads when it starts or reloads
	file   *File
	codec  tripseal.Codec

	inUse *version // the version that it accepted last
}

type token struct {
	text   string
	key    tripseal.KeyID
	from   time.Time // when the key was to begin to seal
	issued time.Time // by the clock of the replica that sealed it
}

func newModel(t *testing.T, seed int) *model {
	m := &model{T: t, random: rand.New(rand.NewPCG(uint64(seed), 0)), since: make(map[tripseal.KeyID]int), saw: make(map[string]int)}
	d := new(keyfile.Document)
	d.Add(m.newKey(time.Now()))
	m.publish(d)
	for _, offset := range []time.Duration{0, -modelSkew, modelSkew, -20 * time.Second, 7 * time.Second} {
		r := &replica{offset: offset, disk: m.versions[0], path: filepath.Join(t.TempDir(), "keys")}
		m.replicas = append(m.replicas, r)
		m.start(r)
	}
	return m
}

func (m *model) newKey(sealsFrom time.Time) *keyfile.Key {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(m.random.Uint32())
	}
	key, err := tripseal.NewKey(secret)
	if err != nil {
		m.Fatal(err)
	}
	sealsFrom = sealsFrom.UTC().Truncate(time.Millisecond)
	return &keyfile.Key{ID: key.ID(), Made: sealsFrom, SealsFrom: sealsFrom, Secret: keyfile.Plain(key)}
}

// copyOf returns a deep copy of the document.
func copyOf(d *keyfile.Document) *keyfile.Document {
	again, err := keyfile.Parse(d.Bytes())
	if err != nil {
		panic(err)
	}
	return again
}

func newVersion(d *keyfile.Document, number int) *version {
	v := &version{Document: copyOf(d), number: number, texts: make(map[time.Duration][]byte)}
	v.keys, v.gone = make(map[tripseal.KeyID]*keyfile.Key), make(map[tripseal.KeyID]keyfile.Revocation)
	for _, k := range v.Keys() {
		v.keys[k.ID] = k
	}
	for _, gone := range v.Revoked() {
		v.gone[gone.ID] = gone
	}
	for _, k := range v.keys {
		v.froms = append(v.froms, k.SealsFrom)
	}
	for _, gone := range v.gone {
		v.froms = append(v.froms, gone.SealsFrom)
	}
	slices.SortFunc(v.froms, time.Time.Compare)
	return v
}

func (m *model) publish(d *keyfile.Document) {
	v := newVersion(d, len(m.versions))
	m.versions = append(m.versions, v)
	for id := range v.keys {
		if _, known := m.since[id]; !known {
			m.since[id] = v.number
		}
	}
	if n := len(m.versions) - 20; n >= 0 {
		clear(m.versions[n].texts) // too old to be delivered
	}
}

func (m *model) latest() *version { return m.versions[len(m.versions)-1] }

func (r *replica) now() time.Time { return time.Now().Add(r.offset) }

// text returns the file on the replica's disk, with dates that are shifted by the offset of the
// replica's clock.
func (r *replica) text() []byte {
	if text := r.disk.texts[r.offset]; text != nil {
		return text
	}
	d := new(keyfile.Document)
	for _, k := range r.disk.keys {
		shifted := *k
		shifted.Made, shifted.SealsFrom = k.Made.Add(-r.offset), k.SealsFrom.Add(-r.offset)
		if !k.OpensUntil.IsZero() {
			shifted.OpensUntil = k.OpensUntil.Add(-r.offset)
		}
		d.Add(&shifted)
	}
	text := bytes.TrimSuffix(d.Bytes(), []byte("end\n"))
	for _, gone := range r.disk.gone {
		text = fmt.Appendf(text, "revoked %s seals-from=%s at=%s\n", gone.ID, gone.SealsFrom.Add(-r.offset).Format(time.RFC3339Nano),
			gone.At.Add(-r.offset).Format(time.RFC3339Nano))
	}
	r.disk.texts[r.offset] = append(text, "end\n"...)
	return r.disk.texts[r.offset]
}

// load puts a version on the disk of a replica, and lets the replica load it.
func (m *model) load(r *replica, v *version) error {
	r.disk = v
	if err := os.WriteFile(r.path, r.text(), 0o600); err != nil {
		m.Fatal(err)
	}
	err := r.file.load(true)
	if err == nil {
		r.inUse = v
	}
	return err
}

// start starts a replica with the file on its disk, or with the latest version if that file cannot
// be used.
func (m *model) start(r *replica) {
	r.file = &File{path: r.path, ctx: context.Background()}
	if err := errors.Join(r.file.options.setDefaults(), r.file.unwraps.use(nil)); err != nil {
		m.Fatal(err)
	}
	r.codec = tripseal.RingCodec(r.file, tripseal.PurposeState)
	if m.load(r, r.disk) == nil {
		return
	}
	if err := m.load(r, m.latest()); err != nil {
		m.Fatalf("the latest version cannot be used: %v\n%s", err, r.disk.Bytes())
	}
}

// opensAt reports whether the OpensUntil of a key allows the key to open tokens at the time t.
func opensAt(k *keyfile.Key, t time.Time) bool {
	return k.OpensUntil.IsZero() || t.Before(k.OpensUntil)
}

// shouldSeal returns the key that must seal: the newest of the keys that open and may already seal.
// If there is none, it returns the key that may seal next.
func (r *replica) shouldSeal() tripseal.KeyID {
	var newest, first *keyfile.Key
	for _, k := range r.inUse.keys {
		if !opensAt(k, r.now()) {
			continue
		}
		if !r.now().Before(k.SealsFrom) && (newest == nil || k.SealsFrom.After(newest.SealsFrom)) {
			newest = k
		}
		if first == nil || k.SealsFrom.Before(first.SealsFrom) {
			first = k
		}
	}
	if newest == nil {
		newest = first
	}
	return newest.ID
}

// next does one random step.
func (m *model) next() {
	if m.random.IntN(500) == 0 {
		m.sleep(30 * time.Minute)
	} else {
		m.sleep(20 * time.Second)
	}
	r := m.replicas[m.random.IntN(len(m.replicas))]
	switch n := m.random.IntN(10_000); {
	case n < 3_500:
		m.seal(r)
	case n < 9_500:
		m.open(r)
	case n < 9_800:
		m.deliver(r, m.latest())
	case n < 9_860: // an older version, from a backup or a roll-back
		m.deliver(r, m.versions[max(0, len(m.versions)-1-m.random.IntN(6))])
	case n < 9_890:
		m.deliver(r, m.edited())
	case n < 9_940:
		m.saw["restart"]++
		m.start(r)
	default:
		m.command()
	}
}

func (m *model) sleep(most time.Duration) {
	time.Sleep(time.Duration(m.random.Int64N(int64(most))).Truncate(time.Millisecond))
}

// command simulates a random command of the operator. The clock of the operator's host is off by up
// to the skew, and now and then it is two hours behind.
func (m *model) command() {
	host := time.Now().Add(time.Duration(m.random.Int64N(int64(2*modelSkew))) - modelSkew)
	if m.random.IntN(20) == 0 {
		host = host.Add(-2 * time.Hour)
		m.saw["host behind"]++
	}
	host = host.UTC().Truncate(time.Millisecond)
	room := keyfile.Room{TTL: modelLifetime, Skew: modelSkew}
	d := copyOf(m.latest().Document)
	s := d.Schedule()
	pick := s[m.random.IntN(len(s))]
	switch n := m.random.IntN(20); {
	case n < 9:
		if host.Before(s[len(s)-1].SealsFrom) {
			return // the command refuses to rotate while a key waits
		}
		k := m.newKey(host.Add(time.Duration(5+m.random.IntN(55)) * time.Minute))
		if d.Rotate(k, host, room) != nil {
			return
		}
		m.saw["rotation"]++
	default:
		if n > 9 {
			return
		}
		if s.SealerAt(host) == pick {
			d.Add(m.newKey(host))
		}
		d.Revoke(pick.ID, host, room)
		m.saw["revocation"]++
	}
	if d.Check(host, keyfile.Room{}) == nil {
		m.publish(d)
	}
}

// edited returns the latest version without one line, as if somebody had deleted it by hand.
func (m *model) edited() *version {
	d := copyOf(m.latest().Document)
	s := d.Schedule()
	if len(s) < 2 {
		return m.latest()
	}
	id := s[m.random.IntN(len(s))].ID
	if m.random.IntN(4) == 0 && len(d.Revoked()) > 0 {
		id = d.Revoked()[0].ID
	}
	edited, err := keyfile.Parse(withoutLine(d.Bytes(), id))
	if err != nil {
		m.Fatal(err)
	}
	return newVersion(edited, -1)
}

func withoutLine(text []byte, id tripseal.KeyID) (left []byte) {
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("key "+id.String())) && !bytes.HasPrefix(line, []byte("revoked "+id.String())) {
			left = append(left, line...)
		}
	}
	return left
}

// deliver puts a version on the disk of a running replica and lets the replica load it. The latest
// version must always load.
func (m *model) deliver(r *replica, v *version) {
	before := r.inUse
	if err := m.load(r, v); err != nil {
		if v == m.latest() {
			m.Errorf("the latest version was refused: %v\n%s\nin use:\n%s", err, v.Bytes(), before.Bytes())
		}
		m.saw["refused"]++
		return
	}
	for id, k := range v.keys {
		if before.keys[id] == nil && v.number > before.number && before.number >= 0 {
			if r.now().Before(k.SealsFrom) {
				m.saw["arrived early"]++
			} else {
				m.saw["arrived late"]++
			}
		}
	}
}

func (m *model) seal(r *replica) {
	text, err := r.codec.Seal(context.Background(), nil, nil)
	if err != nil {
		m.Errorf("a replica no longer seals: %v", err)
		return
	}
	id := r.file.Ring().IDs()[0]
	if want := r.shouldSeal(); id != want {
		m.Errorf("%s seals, by the table it is %s\nin use, at %v:\n%s", id, want, r.now().UTC(), r.inUse.Bytes())
	}
	if len(m.tokens) == 4096 {
		m.tokens = slices.Delete(m.tokens, 0, 2048)
	}
	m.tokens = append(m.tokens, token{string(text), id, r.inUse.keys[id].SealsFrom, r.now()})
}

// open lets a replica open a random token, young or old, and checks the result.
func (m *model) open(r *replica) {
	if len(m.tokens) == 0 {
		return
	}
	among := len(m.tokens)
	if m.random.IntN(3) > 0 {
		among = min(among, 150)
	}
	x := m.tokens[len(m.tokens)-1-m.random.IntN(among)]
	_, err := r.codec.Open(context.Background(), nil, x.text)
	kept, dead := m.kept(r, x), m.dead(r, x)
	switch {
	case kept != "" && dead != "":
		m.Errorf("the dates in the file fall short: by the table a token is %s, and %s\nin use, at %v:\n%s", kept, dead, r.now().UTC(), r.inUse.Bytes())
	case kept != "" && err != nil:
		m.Errorf("an honest token of %s was rejected: %s\nin use, at %v:\n%s", x.key, kept, r.now().UTC(), r.inUse.Bytes())
	case dead != "" && err == nil:
		m.Errorf("a token of %s was opened: %s\nin use, at %v:\n%s", x.key, dead, r.now().UTC(), r.inUse.Bytes())
	}
	m.saw[kept+dead]++
}

// kept returns the reason why the replica must open the token, by the table in docs/operations.md.
// It returns "" if the replica need not open the token.
func (m *model) kept(r *replica, x token) string {
	_, revoked := r.inUse.gone[x.key]
	if revoked || !r.now().Before(x.issued.Add(modelLifetime)) {
		return ""
	}
	switch k := r.inUse.keys[x.key]; {
	case r.inUse.number >= m.since[x.key] && inTime(r.inUse, x):
		return "kept: sealed before the next key was to seal"
	case k != nil && opensAt(k, r.now()):
		return "kept: in the file, by its dates"
	}
	return ""
}

// inTime reports whether a token was sealed before the next key was to begin to seal. Such a token
// must open on every replica.
func inTime(v *version, x token) bool {
	next, _ := slices.BinarySearchFunc(v.froms, x.from.Add(1), time.Time.Compare)
	return next == len(v.froms) || x.issued.Before(v.froms[next])
}

// dead returns the reason why the replica must not open the token, by the table in
// docs/operations.md. It returns "" if the replica may open the token.
func (m *model) dead(r *replica, x token) string {
	if _, revoked := r.inUse.gone[x.key]; revoked {
		return "dead: revoked"
	}
	switch k := r.inUse.keys[x.key]; {
	case k == nil:
		return "dead: not in the file"
	case !opensAt(k, r.now()):
		return "dead: over, by its date"
	}
	return ""
}

// report writes to the log how often each step and each result occurred. It also checks that each
// of them occurred at least once if the run was long.
func (m *model) report(steps int) {
	for _, what := range slices.Sorted(maps.Keys(m.saw)) {
		m.Logf("%8d  %s", m.saw[what], what)
	}
	for _, what := range []string{
		"rotation", "revocation", "restart", "host behind", "arrived early", "arrived late", "refused",
		"kept: sealed before the next key was to seal", "kept: in the file, by its dates",
		"dead: revoked", "dead: not in the file", "dead: over, by its date",
	} {
		if m.saw[what] == 0 && steps >= 50_000 {
			m.Errorf("it never came to: %s", what)
		}
	}
	m.Logf("%d steps, %d versions of the file, %v in simulated time", steps, len(m.versions), time.Since(m.versions[0].Keys()[0].Made).Round(time.Hour))
}
