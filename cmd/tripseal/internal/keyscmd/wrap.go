package keyscmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
)

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
					opened, err := unwrap.Open(cmd, []*keyfile.Key{k})
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
