package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys/agekeys"
)

// secrets holds the flags that say where a new key comes from and how its secret is encrypted.
type secrets struct {
	recipients     []string
	recipientsFile string
	wrap           string
	fromStdin      bool
}

func (s *secrets) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.recipients, "recipient", nil, "encrypt the secret for this age recipient; may be repeated")
	cmd.Flags().StringVar(&s.recipientsFile, "recipients-file", "", "encrypt the secret for the age recipients in this file")
	cmd.Flags().StringVar(&s.wrap, "wrap", "", "encrypt the secret with a key service: SCHEME=COMMAND, stdin to stdout")
	cmd.MarkFlagsMutuallyExclusive("wrap", "recipient")
	cmd.MarkFlagsMutuallyExclusive("wrap", "recipients-file")
}

func (s *secrets) stdinFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.fromStdin, "stdin", false, "take the key (tripseal_key1_…) from standard input instead of making one")
}

// This method generates a key, or reads one from standard input, and encrypts its secret.
// The key has no dates yet. Call this method before you lock the file, because encrypting may
// take a while.
func (s *secrets) make(cmd *cobra.Command) (*keyfile.Key, error) {
	recipients, err := s.ageRecipients()
	if err != nil {
		return nil, err
	}
	key := tripseal.GenerateKey()
	if s.fromStdin {
		if key, err = readKey(cmd); err != nil {
			return nil, err
		}
	}
	k := &keyfile.Key{ID: key.ID(), Secret: keyfile.Plain(key)}
	switch {
	case s.wrap != "":
		k.Secret, err = wrapWith(cmd, s.wrap, key)
	case len(recipients) > 0:
		var wrapped []byte
		if wrapped, err = agekeys.Wrap(key, recipients...); err != nil {
			err = failed("the secret cannot be encrypted: %w", err)
		}
		k.Secret = keyfile.Wrap(agekeys.Scheme, wrapped)
	}
	return k, err
}

// add adds the key k to the key file. It returns an error if the secret of k is not encrypted
// but the file has encrypted secrets.
func (s *secrets) add(d *keyfile.Document, k *keyfile.Key) error {
	if err := s.checkEncrypted(d, k); err != nil {
		return err
	}
	return d.Add(k)
}

// checkEncrypted returns an error if the secret of the key k is not encrypted, but the file has
// encrypted secrets.
func (s *secrets) checkEncrypted(d *keyfile.Document, k *keyfile.Key) error {
	for _, other := range d.Keys() {
		if other.Secret.Wrapped() && !k.Secret.Wrapped() {
			return no("the secrets in the file are encrypted with %s; encrypt the new one too, with --recipient, --recipients-file or --wrap", other.Secret.Scheme())
		}
	}
	return nil
}

func readKey(cmd *cobra.Command) (tripseal.Key, error) {
	text, err := readInput(cmd, 4096)
	if err != nil {
		return tripseal.Key{}, err
	}
	if len(strings.Fields(text)) > 1 {
		return tripseal.Key{}, no("standard input holds more than one key: add one at a time")
	}
	key, err := tripseal.ParseKey(strings.TrimSpace(text))
	if err != nil {
		return tripseal.Key{}, no("standard input is %s", strings.TrimPrefix(err.Error(), "tripseal: "))
	}
	return key, nil
}

// readInput returns all of standard input, or an error if standard input has more bytes than the
// limit. If standard input is a terminal, it first tells the user that it waits for input.
func readInput(cmd *cobra.Command, limit int64) (string, error) {
	in := cmd.InOrStdin()
	if isTerminal(in) {
		fmt.Fprintln(cmd.ErrOrStderr(), "reading from the terminal; end with Ctrl-D on a line of its own")
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return "", failed("standard input: %w", err)
	}
	if int64(len(text)) > limit {
		return "", no("standard input has more than %d bytes", limit)
	}
	return string(text), nil
}

func (s *secrets) ageRecipients() (all []age.Recipient, err error) {
	for _, text := range s.recipients {
		if strings.HasPrefix(strings.ToUpper(text), "AGE-SECRET-KEY-") {
			return nil, errors.New("--recipient was given an identity, which is secret; it wants the public key that age-keygen prints: age1…")
		}
		some, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, errors.New("--recipient is not an age recipient, as age-keygen prints it: age1…")
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
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return nil, failed("--recipients-file: %w", err)
	}
	some, err := age.ParseRecipients(strings.NewReader(string(text)))
	if err != nil { // do not return err, because it may contain a secret identity
		return nil, no("%s is not a file of age recipients: a line each, age1…", named(s.recipientsFile))
	}
	return append(all, some...), nil
}
