package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
	"github.com/mcpseal/mcpseal/keys/agekeys"
)

// secrets are the flags that say how a new secret is made and kept.
type secrets struct {
	recipients     []string
	recipientsFile string
	wrap           string
	fromStdin      bool
}

func (s *secrets) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.recipients, "recipient", nil, "encrypt the secret for this age recipient; may be repeated")
	cmd.Flags().StringVar(&s.recipientsFile, "recipients-file", "", "encrypt the secret for the age recipients in this file")
	cmd.Flags().StringVar(&s.wrap, "wrap", "", "encrypt the secret with a command of a key service, as SCHEME=COMMAND: from standard input to standard output")
	cmd.MarkFlagsMutuallyExclusive("wrap", "recipient")
	cmd.MarkFlagsMutuallyExclusive("wrap", "recipients-file")
}

func (s *secrets) stdinFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.fromStdin, "stdin", false, "take the key (mcpseal_key1_…) from standard input instead of making one")
}

// makeKey makes a key for d. A file whose secrets are encrypted gets no other.
func (s *secrets) makeKey(cmd *cobra.Command, d *keyfile.Document, made, sealsFrom time.Time) (*keyfile.Key, error) {
	recipients, err := s.ageRecipients()
	if err != nil {
		return nil, err
	}
	for _, other := range d.Keys() {
		if other.Secret.Wrapped() && len(recipients) == 0 && s.wrap == "" {
			return nil, no("the secrets in the file are encrypted with %s; encrypt the new one too, with --recipient, --recipients-file or --wrap", other.Secret.Scheme())
		}
	}
	key := mcpseal.GenerateKey()
	if s.fromStdin {
		if key, err = readKey(cmd.InOrStdin()); err != nil {
			return nil, err
		}
	}
	k := &keyfile.Key{ID: key.ID(), Made: made, SealsFrom: sealsFrom, Secret: keyfile.Plain(key)}
	scheme, wrapped := agekeys.Scheme, []byte(nil)
	switch {
	case s.wrap != "":
		scheme, wrapped, err = wrapWith(cmd, s.wrap, key)
	case len(recipients) > 0:
		wrapped, err = agekeys.Wrap(key, recipients...)
	default:
		return k, nil
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return nil, err
	}
	if err != nil {
		return nil, failed("the secret cannot be encrypted: %w", err)
	}
	k.Secret = keyfile.Wrap(scheme, wrapped)
	return k, nil
}

// wrapWith has a command encrypt the key.
func wrapWith(cmd *cobra.Command, wrap string, key mcpseal.Key) (scheme string, wrapped []byte, err error) {
	scheme, command, ok := strings.Cut(wrap, "=")
	if !ok || !keyfile.ValidScheme(scheme) || command == "" {
		return "", nil, &exitError{exitUsage, fmt.Errorf("--wrap %q is not SCHEME=COMMAND, with a scheme of lower-case letters, digits and hyphens", wrap)}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Stdin, shell.Stderr = strings.NewReader(key.Reveal()), cmd.ErrOrStderr()
	if wrapped, err = shell.Output(); err != nil {
		return "", nil, fmt.Errorf("the command of --wrap: %w", err)
	}
	if len(wrapped) == 0 || len(wrapped) > keyfile.MaxWrapped || bytes.Contains(wrapped, []byte(key.Reveal())) {
		return "", nil, fmt.Errorf("the command of --wrap wrote nothing, more than %d bytes, or the secret itself", keyfile.MaxWrapped)
	}
	return scheme, wrapped, nil
}

func readKey(r io.Reader) (mcpseal.Key, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return mcpseal.Key{}, failed("standard input: %w", err)
	}
	key, err := mcpseal.ParseKey(strings.TrimSpace(line))
	if err != nil {
		return mcpseal.Key{}, no("standard input is %s", strings.TrimPrefix(err.Error(), "mcpseal: "))
	}
	return key, nil
}

func (s *secrets) ageRecipients() (all []age.Recipient, err error) {
	for _, text := range s.recipients {
		some, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("--recipient %q is not an age recipient, as age-keygen prints it: age1…", text)
		}
		all = append(all, some...)
	}
	if s.recipientsFile == "" {
		return all, nil
	}
	file, err := os.Open(s.recipientsFile)
	if err != nil {
		return nil, failed("--recipients-file: %w", err)
	}
	defer file.Close()
	some, err := age.ParseRecipients(io.LimitReader(file, 1<<20))
	if err != nil {
		return nil, no("%s: %w", s.recipientsFile, err)
	}
	return append(all, some...), nil
}
