package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
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
	fromStdin      bool
}

func (s *secrets) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.recipients, "recipient", nil, "encrypt the secret for this age recipient; may be repeated")
	cmd.Flags().StringVar(&s.recipientsFile, "recipients-file", "", "encrypt the secret for the age recipients in this file")
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
		if other.Secret.Wrapped() && len(recipients) == 0 {
			return nil, no("the secrets in the file are encrypted with %s; encrypt the new one too, with --recipient or --recipients-file", other.Secret.Scheme())
		}
	}
	key := mcpseal.GenerateKey()
	if s.fromStdin {
		if key, err = readKey(cmd.InOrStdin()); err != nil {
			return nil, err
		}
	}
	k := &keyfile.Key{ID: key.ID(), Made: made, SealsFrom: sealsFrom, Secret: keyfile.Plain(key)}
	if len(recipients) > 0 {
		wrapped, err := agekeys.Wrap(key, recipients...)
		if err != nil {
			return nil, failed("the secret cannot be encrypted: %w", err)
		}
		k.Secret = keyfile.Wrap(agekeys.Scheme, wrapped)
	}
	return k, nil
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
