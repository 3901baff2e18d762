package keys

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
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
	gone   map[tripseal.KeyID]*keyfile.Revocation
	froms  []time.Time              // when each key begins to seal, in order; revoked keys included
	texts  map[time.Duration][]byte // the text for each offset of a replica's clock
}

// replica is one member of the fleet, with what the model knows about it.
type replica struct {
	offset time.Duration // of its clock
	disk   *version      // the file that it reads when it starts or reloads
	file   *File
	codec  tripseal.Codec

	started int                          // how often it was started; tells its processes apart
	inUse   *version                     // the version that it accepted last
	revoked map[tripseal.KeyID]bool      // the keys that are revoked in any version that the replica accepted since its last start
	sealing tripseal.KeyID               // the key that sealed at the last call of watch
	sealed  map[tripseal.KeyID]time.Time // the latest time at which each key may have sealed here
}

type token struct {
	text    string
	key     tripseal.KeyID
	from    time.Time // when the key was to begin to seal
	issued  time.Time // by the clock of the replica that sealed it
	by      *replica
	started int // how many times the replica had started when it sealed the token
}

func newModel(t *testing.T, seed int) *model {
	m := &model{T: t, random: rand.New(rand.NewPCG(uint64(seed), 0)), since: make(map[tripseal.KeyID]int), saw: make(map[string]int)}
	d := new(keyfile.Document)
	if err := d.Add(m.newKey(time.Now())); err != nil {
		t.Fatal(err)
	}
	m.publish(d)
	for _, offset := range []time.Duration{0, -modelSkew, modelSkew, -20 * time.Second, 7 * time.Second} {
		r := &replica{offset: offset, disk: m.versions[0]}
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
	v.keys, v.gone = v.ByID()
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
func (r *replica) text() ([]byte, error) {
	if text := r.disk.texts[r.offset]; text != nil {
		return bytes.Clone(text), nil
	}
	d := copyOf(r.disk.Document)
	keys, revoked := d.ByID()
	for _, k := range keys {
		k.Made, k.SealsFrom = k.Made.Add(-r.offset), k.SealsFrom.Add(-r.offset)
		if !k.OpensUntil.IsZero() {
			k.OpensUntil = k.OpensUntil.Add(-r.offset)
		}
	}
	for _, gone := range revoked {
		gone.SealsFrom, gone.At = gone.SealsFrom.Add(-r.offset), gone.At.Add(-r.offset)
	}
	r.disk.texts[r.offset] = d.Bytes()
	return d.Bytes(), nil
}

// start starts a replica with the file on its disk, or with the latest version if that file cannot
// be used.
func (m *model) start(r *replica) {
	for {
		file, err := newFile("keys", r.text, &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			m.Fatal(err)
		}
		if err = file.load(true); err == nil {
			r.file, r.codec = file, tripseal.RingCodec(file, tripseal.PurposeState)
			break
		}
		if r.disk == m.latest() {
			m.Fatalf("the latest version cannot be used: %v\n%s", err, r.disk.Bytes())
		}
		r.disk = m.latest()
	}
	r.started++
	r.inUse = r.disk
	r.revoked = make(map[tripseal.KeyID]bool)
	r.sealed = make(map[tripseal.KeyID]time.Time)
	r.learn()
	r.sealing = r.shouldSeal()
}

// learn adds to r.revoked the keys that the version in use revokes.
func (r *replica) learn() {
	for id := range r.inUse.gone {
		r.revoked[id] = true
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

// watch updates r.sealed for two keys: the key that sealed at the last call, and the key that seals
// now. Both may have sealed until now.
func (r *replica) watch() {
	now := r.now()
	r.sealed[r.sealing] = now
	r.sealing = r.shouldSeal()
	r.sealed[r.sealing] = now
}

// next does one random step.
func (m *model) next() {
	if m.random.IntN(500) == 0 {
		m.sleep(30 * time.Minute)
	} else {
		m.sleep(20 * time.Second)
	}
	for _, r := range m.replicas {
		r.watch()
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
		for _, k := range s {
			if s.Phase(k, host) == keyfile.Waiting {
				return // the command refuses to rotate while a key waits
			}
		}
		k := m.newKey(host.Add(time.Duration(5+m.random.IntN(55)) * time.Minute))
		if d.Rotate(k, host, room) != nil {
			return
		}
		m.saw["rotation"]++
	case n < 10:
		if s.SealerAt(host) == pick {
			if err := d.Add(m.newKey(host)); err != nil {
				return
			}
		}
		d.Revoke(pick.ID, host)
		d.Extend(host, room)
		m.saw["revocation"]++
	case n < 15:
		if keys, _ := d.Prune(host); keys > 0 {
			m.saw["prune"]++
		}
	default:
		if !pick.OpensUntil.IsZero() {
			later := max(0, host.Sub(pick.OpensUntil)) + time.Duration(m.random.IntN(90))*time.Minute
			pick.OpensUntil = pick.OpensUntil.Add(later)
			m.saw["extend"]++
		}
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
	edited.Extend(time.Now(), keyfile.Room{TTL: modelLifetime, Skew: modelSkew})
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

// deliver puts a version on the disk of a running replica and lets the replica load it. It checks
// that the replica refuses the version if it must.
func (m *model) deliver(r *replica, v *version) {
	r.disk = v
	before := r.inUse
	var lacks, back []tripseal.KeyID
	for id, k := range before.keys {
		if opensAt(k, r.now()) && v.keys[id] == nil && v.gone[id] == nil {
			lacks = append(lacks, id)
		}
	}
	for id := range v.keys {
		if r.revoked[id] {
			back = append(back, id)
		}
	}
	err := r.file.load(true)
	switch {
	case len(lacks) > 0 && err == nil:
		m.Errorf("a file without %v, which still opens, was taken", lacks)
	case len(back) > 0 && err == nil:
		m.Errorf("a file with %v, which was revoked, was taken", back)
	case len(lacks) > 0:
		m.saw["refused: lacks a living key"]++
	case len(back) > 0:
		m.saw["refused: revoked key came back"]++
	case err != nil && v == m.latest():
		m.Errorf("the latest version was refused: %v\n%s\nin use:\n%s", err, v.Bytes(), before.Bytes())
	}
	if err != nil {
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
	r.inUse = v
	r.learn()
	r.watch()
}

func (m *model) seal(r *replica) {
	text, err := r.codec.Seal(context.Background(), nil, nil)
	if err != nil {
		m.Errorf("a replica no longer seals: %v", err)
		return
	}
	id := r.file.Ring().IDs()[0]
	if id != r.sealing {
		m.Errorf("%s seals, by the table it is %s\nin use, at %v:\n%s", id, r.sealing, r.now().UTC(), r.inUse.Bytes())
	}
	if len(m.tokens) == 4096 {
		m.tokens = slices.Delete(m.tokens, 0, 2048)
	}
	m.tokens = append(m.tokens, token{string(text), id, r.inUse.keys[id].SealsFrom, r.now(), r, r.started})
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
	now := r.now()
	if r.revoked[x.key] || !now.Before(x.issued.Add(modelLifetime)) {
		return ""
	}
	k := r.inUse.keys[x.key]
	switch {
	case r.inUse.number >= m.since[x.key] && inTime(r.inUse, x):
		return "kept: sealed before the next key was to seal"
	case k != nil && opensAt(k, now):
		return "kept: in the file, by its dates"
	case x.by == r && x.started == r.started:
		return "kept: sealed by this process, and the file came late"
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
	now := r.now()
	if r.revoked[x.key] {
		return "dead: revoked"
	}
	if sealed, ok := r.sealed[x.key]; ok && now.Before(sealed.Add(modelLifetime+modelSkew)) {
		return ""
	}
	switch k := r.inUse.keys[x.key]; {
	case k == nil:
		return "dead: not in the file"
	case !opensAt(k, now):
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
		"rotation", "revocation", "prune", "extend", "restart", "host behind", "arrived early", "arrived late",
		"refused: lacks a living key", "refused: revoked key came back",
		"kept: sealed before the next key was to seal", "kept: in the file, by its dates", "kept: sealed by this process, and the file came late",
		"dead: revoked", "dead: not in the file", "dead: over, by its date",
	} {
		if m.saw[what] == 0 && steps >= 50_000 {
			m.Errorf("it never came to: %s", what)
		}
	}
	m.Logf("%d steps, %d versions of the file, %v in simulated time", steps, len(m.versions), time.Since(m.versions[0].Keys()[0].Made).Round(time.Hour))
}
