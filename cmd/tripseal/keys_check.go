package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newKeysCheck() *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say whether a file would load, and what would change",
		Long: `Says whether a service would load the file, and what will happen then. With --against,
also says what would change for a service that uses another file now.

Exit code 1 means that the file would not load, or that tokens are lost; --allow-loss
accepts the latter, for a key that was revoked. Exit code 3 means that there is no
answer: secrets are encrypted and nothing was given to decrypt them, or the two files
have no key in common.`,
		Example:           `  tripseal keys check new-keys --against /etc/release/keys`,
		Args:              exactArgs("FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.room.check(); err != nil {
				return err
			}
			view, err := c.check(cmd, args[0])
			if err != nil {
				view.OK, view.Problem = false, err.Error()
			}
			// With --json, always print the view. Without --json, print it if there is no error, or
			// if the error says that tokens are lost. After all other errors, view.Done is empty.
			if err == nil || forProgram(cmd) || view.Done != "" {
				if err := view.print(cmd); err != nil {
					return err
				}
			}
			return err
		},
	}
	c.room.flags(cmd)
	c.unwrap.flags(cmd)
	cmd.Flags().StringVar(&c.against, "against", "", "the file that is in use")
	cmd.Flags().BoolVar(&c.allowLoss, "allow-loss", false, "exit with 0 although tokens are lost, as after revoke")
	return cmd
}

// checking holds the flags of the command tripseal keys check.
type checking struct {
	room      room
	unwrap    unwrap
	against   string
	allowLoss bool
}

// check returns a view of the file, and an error that says what is wrong with the file. The view's
// field Done says that the file would load. check sets it if nothing is wrong, and also if the
// error says that tokens are lost.
func (c *checking) check(cmd *cobra.Command, path string) (fileView, error) {
	view, d, err := look(path)
	if err != nil {
		return view, err
	}
	if identity := c.unwrap.identity; identity != "" {
		for _, how := range keyfile.Exposed(identity, userOf(identity)) {
			view.warn("%s: %s", named(identity), how)
		}
	}
	needed := c.room.forLoading(d)
	if err := d.Check(view.now, needed); err != nil {
		return view, no("%s would not load: %s", named(path), withRepair(path, err))
	}
	var lost []string
	done := named(path) + " would load"
	if c.against != "" {
		_, old, err := look(c.against)
		if err != nil {
			return view, err
		}
		if err := c.refusal(path, old, d, view.now); err != nil {
			return view, err
		}
		view.Changes, lost = differences(old, d, view.now, needed)
		done += "; compared with " + named(c.against) + ":"
		if len(view.Changes) == 0 {
			done += " nothing changes"
		}
	}
	if len(lost) > 0 && !c.allowLoss {
		view.Done = done
		return view, no("tokens are lost: %s; --allow-loss accepts that", strings.Join(lost, "; "))
	}
	if err := c.checkSecrets(cmd, path, d, view.now); err != nil {
		return view, err
	}
	view.Done = done
	return view, nil
}

// refusal returns why a service that uses the old file would refuse to load the new file d, or
// nil if it would load d.
func (c *checking) refusal(path string, old, d *keyfile.Document, now time.Time) error {
	keys, revoked := d.ByID()
	oldKeys, oldRevoked := old.ByID()
	common := false
	for id := range keys {
		if r := oldRevoked[id]; r != nil {
			return no("%s would not load: key %s was revoked in %s (%s)", named(path), id, named(c.against), timeText(r.At, now))
		}
		common = common || oldKeys[id] != nil
	}
	var missing []string
	for _, k := range old.Schedule() {
		if revoked[k.ID] != nil {
			common = true
		} else if keys[k.ID] == nil && k.Opens(now) {
			missing = append(missing, k.ID.String())
		}
	}
	switch {
	case !common:
		return failed("%s and %s have no key in common, so they cannot be compared: is that the file in use? Services that use it refuse the other one",
			named(path), named(c.against))
	case len(missing) > 0:
		return no("%s would not load where %s is in use: it lacks %s, which still opens tokens; only revoke takes out such a key",
			named(path), named(c.against), strings.Join(missing, " "))
	}
	return nil
}

// checkSecrets returns an error if a secret that a service would load cannot be decrypted, or
// is not a usable key. A service loads every secret, except the encrypted secrets of keys that
// no longer open tokens.
func (c *checking) checkSecrets(cmd *cobra.Command, path string, d *keyfile.Document, now time.Time) error {
	var needed []*keyfile.Key
	for _, k := range d.Keys() {
		if k.Opens(now) || !k.Secret.Wrapped() {
			needed = append(needed, k)
		}
	}
	if scheme := wrappedScheme(needed); scheme != "" && !c.unwrap.given() {
		return failed("the dates in %s are good, but the secrets are wrapped with %s and could not be looked at: give %s",
			named(path), scheme, howToUnwrap(scheme))
	}
	keys, err := c.unwrap.decrypt(cmd, needed)
	if err == nil {
		_, err = tripseal.NewRing(keys...)
	}
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return no("%s would not load: %w", named(path), err)
}

// differences compares two files of keys. The first result has a text for each change that a
// service sees if it loads the new file d instead of the old one. The second result has only
// the texts of those changes that make services reject valid tokens.
func differences(old, d *keyfile.Document, now time.Time, needed keyfile.Room) (lines, lost []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	loss := func(format string, args ...any) {
		line(format, args...)
		lost = append(lost, lines[len(lines)-1])
	}
	was, is := old.Schedule().SealerAt(now), d.Schedule().SealerAt(now)
	changed := was != nil && is != nil && was.ID != is.ID
	if changed {
		line("%s seals instead of %s", is.ID, was.ID)
	}
	keys, revoked := d.ByID()
	oldKeys, _ := old.ByID()
	for _, k := range d.Keys() {
		before := oldKeys[k.ID]
		if before == nil {
			switch {
			case k == is:
				loss("%s is new and seals at once: replicas without the file reject its tokens", k.ID)
			case k.Opens(now):
				line("%s is new", k.ID)
			}
			continue
		}
		if !before.SealsFrom.Equal(k.SealsFrom) {
			line("%s seals from %s UTC, before from %s UTC", k.ID, clock(k.SealsFrom), clock(before.SealsFrom))
		}
		if !before.OpensUntil.Equal(k.OpensUntil) {
			line("%s %s, before it %s", k.ID, endOf(k), endOf(before))
		}
		if changed && before == was && !k.OpensUntil.IsZero() && k.OpensUntil.Before(now.Add(needed.TTL+needed.Skew)) {
			loss("%s seals until replicas get the file, and %s: too short for its last tokens", k.ID, endOf(k))
		}
	}
	for _, k := range old.Schedule() {
		switch {
		case keys[k.ID] != nil || revoked[k.ID] == nil || !k.Opens(now):
		case keyfile.PhaseOf(k, was, now) == keyfile.Waiting:
			line("%s is revoked before it sealed", k.ID)
		default:
			loss("%s is revoked: its tokens are rejected", k.ID)
		}
	}
	return lines, lost
}

func endOf(k *keyfile.Key) string {
	if k.OpensUntil.IsZero() {
		return "has no end"
	}
	return "opens until " + clock(k.OpensUntil) + " UTC"
}
