// Package keyuse has what several commands do with files of keys: decrypt secrets, tell what a key
// does at a time, and say why a file cannot be used.
package keyuse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/keys/agekeys"
)

// Phase is what a key does at a given time.
type Phase string

const (
	Waiting Phase = "waiting" // the key opens tokens, and will seal later
	Sealing Phase = "sealing" // the key opens and seals tokens
	Opening Phase = "opening" // the key opens tokens, but no longer seals
	Retired Phase = "retired" // the key neither opens nor seals tokens
)

// PhaseOf returns what the key k does at the time t, if sealer is the key that seals at t.
func PhaseOf(k, sealer *keyfile.Key, t time.Time) Phase {
	switch {
	case !k.Opens(t):
		return Retired
	case sealer == k:
		return Sealing
	case t.Before(k.SealsFrom):
		return Waiting
	}
	return Opening
}

// FileError returns err with the file's name and an exit code.
func FileError(path string, err error) error {
	var exit *cli.ExitError
	var system syscall.Errno
	switch {
	case errors.As(err, &exit):
		return err
	case errors.Is(err, keyfile.ErrChanged):
		return cli.Failed("%s: %w; try again", cli.Named(path), err)
	case errors.As(err, &system), errors.Is(err, keyfile.ErrNotRegular):
		return cli.Failed("%s: %w", cli.Named(path), err)
	}
	return cli.No("%s: %w", cli.Named(path), err)
}

const commandTimeout = time.Minute

// Filter runs the shell command of a flag. It gives the command the input, and returns its output.
func Filter(cmd *cobra.Command, flag, command string, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Stdin, shell.Stderr = bytes.NewReader(input), cmd.ErrOrStderr()
	shell.WaitDelay = time.Second // how long to wait if a process started by the shell keeps the pipe open
	output, err := shell.Output()
	switch {
	case ctx.Err() != nil:
		return nil, cli.Failed("the command of %s took longer than %v", flag, commandTimeout)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, cli.Failed("the command of %s failed: %w", flag, err)
	}
	return output, nil
}

// SchemeCommand splits the value of a flag, which has the form SCHEME=COMMAND.
func SchemeCommand(flag, text string) (scheme, command string, err error) {
	scheme, command, ok := strings.Cut(text, "=")
	if !ok || !keyfile.ValidScheme(scheme) || command == "" {
		return "", "", cli.Usage("%s is not SCHEME=COMMAND, with a scheme of lower-case letters, digits and hyphens", flag)
	}
	return scheme, command, nil
}

// Unwrap holds the flags that say how wrapped secrets are decrypted.
type Unwrap struct {
	Identity, Command string
	flag              string // the name of the flag for Identity
}

// Flags adds the flags. The flag for a file of age identities has the given name.
func (u *Unwrap) Flags(cmd *cobra.Command, identity string) {
	u.flag = "--" + identity
	cmd.Flags().StringVar(&u.Identity, identity, "", "a `FILE` of age identities, for secrets that are wrapped with age")
	cmd.Flags().StringVar(&u.Command, "unwrap", "", "decrypt secrets with a key service: `SCHEME=COMMAND`, stdin to stdout")
}

// Given reports whether one of the flags was given.
func (u *Unwrap) Given() bool { return u.Identity != "" || u.Command != "" }

// Unwrappers returns what the flags name.
func (u *Unwrap) Unwrappers(cmd *cobra.Command) (all []keys.Unwrapper, err error) {
	if u.Identity != "" {
		unwrapper, err := agekeys.IdentityFile(u.Identity)
		if err != nil {
			return nil, cli.Failed("%s: %w", u.flag, err)
		}
		all = append(all, unwrapper)
	}
	if u.Command != "" {
		scheme, command, err := SchemeCommand("--unwrap", u.Command)
		if err != nil {
			return nil, err
		}
		all = append(all, commandUnwrapper{cmd, scheme, command})
	}
	return all, nil
}

// commandUnwrapper decrypts secrets with the shell command of the flag --unwrap.
type commandUnwrapper struct {
	cmd             *cobra.Command
	scheme, command string
}

func (u commandUnwrapper) Scheme() string { return u.scheme }

func (u commandUnwrapper) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) {
	return Filter(u.cmd, "--unwrap", u.command, wrapped)
}

// Open returns the given keys of the file at the given path with their secrets.
func (u *Unwrap) Open(cmd *cobra.Command, path string, wanted []*keyfile.Key) (opened []tripseal.Key, err error) {
	unwrappers, err := u.Unwrappers(cmd)
	if err != nil {
		return nil, err
	}
	by := make(map[string]keyfile.Unwrapper)
	for _, each := range unwrappers {
		by[each.Scheme()] = each
	}
	for _, k := range wanted {
		if k.Secret.Scheme() != "" && !u.Given() {
			return nil, cli.Failed("%s: its secrets are wrapped: give %s or --unwrap", cli.Named(path), u.flag)
		}
		key, err := k.Open(cmd.Context(), by)
		if err != nil {
			return nil, FileError(path, fmt.Errorf("it would not load: %w", err))
		}
		opened = append(opened, key)
	}
	return opened, nil
}

// Source holds the flags that say where keys are: in a file, or in an environment variable.
type Source struct {
	File, Variable string
	Unwrap         Unwrap
	encoding       string
}

// Flags adds the flags. The flag for a file of age identities has the given name.
func (s *Source) Flags(cmd *cobra.Command, identity, file, variable string) {
	cmd.Flags().StringVar(&s.File, "keys", "", file)
	s.Unwrap.Flags(cmd, identity)
	cmd.Flags().StringVar(&s.Variable, "keys-env", "", variable)
	cmd.Flags().StringVar(&s.encoding, "keys-encoding", keys.Tripseal.String(), "how that variable is encoded: tripseal, hex, base64 or base64url")
}

// FromVariable returns the keys in the environment variable.
func (s *Source) FromVariable() (*tripseal.Ring, error) {
	encoding, err := keys.ParseEncoding(s.encoding)
	if err != nil {
		return nil, cli.Usage("--keys-encoding: %s", strings.TrimPrefix(err.Error(), "keys: "))
	}
	ring, err := keys.FromEnvironment(s.Variable, encoding)
	if err != nil {
		return nil, cli.Failed("--keys-env: %s", strings.TrimPrefix(err.Error(), "keys: "))
	}
	return ring, nil
}
