package keyscmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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
		text, err := cli.ReadInput(cmd, 4096)
		if err != nil {
			return nil, err
		}
		if key, err = tripseal.ParseKey(strings.TrimSpace(text)); err != nil {
			return nil, cli.No("standard input is %s", strings.TrimPrefix(err.Error(), "tripseal: "))
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

func (s *newSecret) ageRecipients() ([]age.Recipient, error) {
	if len(s.recipients) == 0 && s.recipientsFile == "" {
		return nil, nil
	}
	text := strings.Join(s.recipients, "\n")
	if s.recipientsFile != "" {
		file, err := os.ReadFile(s.recipientsFile)
		if err != nil {
			return nil, cli.Failed("--recipients-file: %w", err)
		}
		text += "\n" + string(file)
	}
	all, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil { // err is left out, because it may contain a secret identity
		return nil, errors.New("--recipient is not an age recipient, the public key that age-keygen prints (age1…), or --recipients-file not a file of them")
	}
	return all, nil
}

func newWrap() *cobra.Command {
	var secret newSecret
	var unwrap keyuse.Unwrap
	cmd := &cobra.Command{
		Use:   "wrap FILE",
		Short: "Encrypt the secrets in a file, or encrypt them anew",
		Long: `Encrypts every secret in the file, for age or with a key service. With --identity or
--unwrap it also decrypts the secrets that are encrypted already, and encrypts them
anew, for other recipients for example. The keys and their dates stay.

A service needs keys.Options.Unwrap to read the file, and refuses one with readable
secrets once it has that. So wrap a copy, and change each service's options
together with the name of its file. Whoever had the readable file still has the
keys: revoke them if that matters.`,
		Example: `  cp keys keys.age && tripseal keys wrap keys.age --recipient age1…
  tripseal keys wrap keys.age --identity old --recipients-file recipients`,
		Args: cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			encrypt, err := secret.encrypter(cmd)
			if err != nil {
				return err
			}
			if encrypt == nil {
				return errors.New("say how: --recipient, --recipients-file or --wrap")
			}
			return update(cmd, args[0], func(d *keyfile.Document, _ time.Time, did *fileView) error {
				n := 0
				for _, k := range d.Keys() {
					if k.Secret.Scheme() != "" && !unwrap.Given() {
						continue
					}
					opened, err := unwrap.Open(cmd, args[0], []*keyfile.Key{k})
					if err != nil {
						return err
					}
					if k.Secret, err = encrypt(opened[0]); err != nil {
						return err
					}
					n++
				}
				did.Done = fmt.Sprintf("encrypted %s; whoever had the file before still has the keys", cli.Count(n, "secret"))
				return nil
			})
		},
	}
	secret.flags(cmd)
	unwrap.Flags(cmd, "identity")
	return cmd
}
