package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys/agekeys"
)

const commandTimeout = time.Minute

// filter runs a shell command that encrypts or decrypts a secret. The command reads the given
// input from its standard input, and filter returns what the command writes to standard output.
func filter(cmd *cobra.Command, flag, command string, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Stdin, shell.Stderr = bytes.NewReader(input), cmd.ErrOrStderr()
	shell.WaitDelay = time.Second // how long to wait if a process started by the shell keeps the pipe open
	output, err := shell.Output()
	switch {
	case ctx.Err() != nil:
		return nil, failed("the command of %s took longer than %v", flag, commandTimeout)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, failed("the command of %s failed: %w", flag, err)
	}
	return output, nil
}

// schemeCommand splits the value of a flag, which has the form SCHEME=COMMAND.
func schemeCommand(flag, text string) (scheme, command string, err error) {
	scheme, command, ok := strings.Cut(text, "=")
	if !ok || !keyfile.ValidScheme(scheme) || command == "" {
		return "", "", usage("%s is not SCHEME=COMMAND, with a scheme of lower-case letters, digits and hyphens", flag)
	}
	return scheme, command, nil
}

// wrapWith encrypts the key with a shell command. The argument wrap is the value of the flag
// --wrap, SCHEME=COMMAND.
func wrapWith(cmd *cobra.Command, wrap string, key tripseal.Key) (keyfile.Secret, error) {
	scheme, command, err := schemeCommand("--wrap", wrap)
	if err != nil {
		return keyfile.Secret{}, err
	}
	wrapped, err := filter(cmd, "--wrap", command, []byte(key.Reveal()))
	if err != nil {
		return keyfile.Secret{}, err
	}
	if len(wrapped) == 0 || len(wrapped) > keyfile.MaxWrapped || bytes.Contains(wrapped, []byte(key.Reveal())) {
		return keyfile.Secret{}, failed("the command of --wrap wrote nothing, more than %d bytes, or the secret itself", keyfile.MaxWrapped)
	}
	return keyfile.Wrap(scheme, wrapped), nil
}

// unwrap holds the flags that say how wrapped secrets are decrypted.
type unwrap struct{ identity, command string }

func (u *unwrap) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&u.identity, "identity", "", "a file of age identities, for secrets that are wrapped with age")
	cmd.Flags().StringVar(&u.command, "unwrap", "", "decrypt secrets with a key service: SCHEME=COMMAND, stdin to stdout")
}

func (u *unwrap) given() bool { return u.identity != "" || u.command != "" }

// commandUnwrapper decrypts secrets with the shell command in the flag --unwrap.
type commandUnwrapper struct {
	cmd             *cobra.Command
	scheme, command string
}

func (u commandUnwrapper) Scheme() string { return u.scheme }

func (u commandUnwrapper) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) {
	return filter(u.cmd, "--unwrap", u.command, wrapped)
}

// decryptAll decrypts and returns all keys in the key file, including expired keys.
func (u *unwrap) decryptAll(cmd *cobra.Command, d *keyfile.Document) ([]tripseal.Key, error) {
	return u.decrypt(cmd, d.Keys())
}

func (u *unwrap) decrypt(cmd *cobra.Command, wanted []*keyfile.Key) (keys []tripseal.Key, err error) {
	var unwrappers []keyfile.Unwrapper
	if u.identity != "" {
		unwrapper, err := agekeys.IdentityFile(u.identity)
		if err != nil {
			return nil, failed("--identity: %w", err)
		}
		unwrappers = append(unwrappers, unwrapper)
	}
	if u.command != "" {
		scheme, command, err := schemeCommand("--unwrap", u.command)
		if err != nil {
			return nil, err
		}
		unwrappers = append(unwrappers, commandUnwrapper{cmd, scheme, command})
	}
	for _, k := range wanted {
		key, err := k.Open(cmd.Context(), unwrappers)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// wrappedScheme returns the scheme of the first secret that is wrapped (encrypted), or "" if
// none is.
func wrappedScheme(keys []*keyfile.Key) string {
	for _, k := range keys {
		if k.Secret.Wrapped() {
			return k.Secret.Scheme()
		}
	}
	return ""
}

// howToUnwrap returns the flag that an error message tells the user to give, so that secrets
// of the scheme can be decrypted.
func howToUnwrap(scheme string) string {
	if scheme == agekeys.Scheme {
		return "--identity FILE"
	}
	return "--unwrap " + scheme + "=COMMAND"
}
