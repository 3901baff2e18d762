package keyscmd

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys/agekeys"
)

// newSecret holds the flags that say where a new key comes from and how its secret is encrypted.
type newSecret struct {
	recipients     []string
	recipientsFile string
	wrap           string
	fromStdin      bool
}

func (s *newSecret) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.recipients, "recipient", nil, "encrypt the secret for this age recipient; may be repeated")
	cmd.Flags().StringVar(&s.recipientsFile, "recipients-file", "", "encrypt the secret for the age recipients in this file")
	cmd.Flags().StringVar(&s.wrap, "wrap", "", "encrypt the secret with a key service: SCHEME=COMMAND, stdin to stdout")
	cmd.MarkFlagsMutuallyExclusive("wrap", "recipient")
	cmd.MarkFlagsMutuallyExclusive("wrap", "recipients-file")
}

func (s *newSecret) stdinFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.fromStdin, "stdin", false, "take the key (tripseal_key1_…) from standard input instead of making one")
}

// This method generates a key, or reads one from standard input, and encrypts its secret. The key
// has no dates yet. Call it before the file is locked, because encrypting may take a while.
func (s *newSecret) make(cmd *cobra.Command) (*keyfile.Key, error) {
	key := tripseal.GenerateKey()
	if s.fromStdin {
		var err error
		if key, err = readKey(cmd); err != nil {
			return nil, err
		}
	}
	encrypt, err := s.encrypter(cmd)
	if err != nil {
		return nil, err
	}
	k := &keyfile.Key{ID: key.ID(), Secret: keyfile.Plain(key)}
	if encrypt != nil {
		k.Secret, err = encrypt(key)
	}
	return k, err
}

// encrypter returns the function that encrypts a secret, or nil if no flag asks for one.
func (s *newSecret) encrypter(cmd *cobra.Command) (func(tripseal.Key) (keyfile.Secret, error), error) {
	if s.wrap != "" {
		scheme, command, err := keyuse.SchemeCommand("--wrap", s.wrap)
		if err != nil {
			return nil, err
		}
		return func(key tripseal.Key) (keyfile.Secret, error) {
			wrapped, err := keyuse.Filter(cmd, "--wrap", command, []byte(key.Reveal()))
			if err == nil && (len(wrapped) == 0 || len(wrapped) > keyfile.MaxWrapped || bytes.Contains(wrapped, []byte(key.Reveal()))) {
				err = cli.Failed("the command of --wrap wrote nothing, more than %d bytes, or the secret itself", keyfile.MaxWrapped)
			}
			return keyfile.Wrap(scheme, wrapped), err
		}, nil
	}
	recipients, err := s.ageRecipients()
	if err != nil || len(recipients) == 0 {
		return nil, err
	}
	return func(key tripseal.Key) (keyfile.Secret, error) {
		wrapped, err := agekeys.Wrap(key, recipients...)
		if err != nil {
			err = cli.Failed("the secret cannot be encrypted: %w", err)
		}
		return keyfile.Wrap(agekeys.Scheme, wrapped), err
	}, nil
}

// fits returns an error if the file has encrypted secrets, but the secret of the new key k is not
// encrypted.
func (s *newSecret) fits(d *keyfile.Document, k *keyfile.Key) error {
	for _, other := range d.Keys() {
		if scheme := other.Secret.Scheme(); scheme != "" && k.Secret.Scheme() == "" {
			return cli.No("the secrets in the file are encrypted with %s; encrypt the new one too, with --recipient, --recipients-file or --wrap", scheme)
		}
	}
	return nil
}

func readKey(cmd *cobra.Command) (tripseal.Key, error) {
	text, err := cli.ReadInput(cmd, 4096)
	if err != nil {
		return tripseal.Key{}, err
	}
	if len(strings.Fields(text)) > 1 {
		return tripseal.Key{}, cli.No("standard input holds more than one key: give one at a time")
	}
	key, err := tripseal.ParseKey(strings.TrimSpace(text))
	if err != nil {
		return tripseal.Key{}, cli.No("standard input is %s", strings.TrimPrefix(err.Error(), "tripseal: "))
	}
	return key, nil
}

func (s *newSecret) ageRecipients() (all []age.Recipient, err error) {
	for _, text := range s.recipients {
		some, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, errors.New("--recipient is not an age recipient, the public key that age-keygen prints: age1…")
		}
		all = append(all, some...)
	}
	if s.recipientsFile == "" {
		return all, nil
	}
	text, err := os.ReadFile(s.recipientsFile)
	if err != nil {
		return nil, cli.Failed("--recipients-file: %w", err)
	}
	some, err := age.ParseRecipients(bytes.NewReader(text))
	if err != nil { // do not return err, because it may contain a secret identity
		return nil, cli.No("%s is not a file of age recipients: a line each, age1…", cli.Named(s.recipientsFile))
	}
	return append(all, some...), nil
}
