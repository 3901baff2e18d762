package inspectcmd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys"
)

// keyFlags holds the flags that say where the keys are: in a file, or in an environment
// variable.
type keyFlags struct {
	file     string
	unwrap   keyuse.Unwrap
	variable string
	encoding string
	implied  bool // true if the keys come from TRIPSEAL_KEYS and no flag names this variable
}

func (k *keyFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.file, "keys", "", "the file with the key that sealed the token")
	k.unwrap.Flags(cmd, "identity")
	cmd.Flags().StringVar(&k.variable, "keys-env", "", "the environment variable with the key that sealed the token (default "+keys.Variable+", if it is set)")
	cmd.Flags().StringVar(&k.encoding, "keys-encoding", keys.Tripseal.String(), "how that variable is encoded: tripseal, hex, base64 or base64url")
	cmd.MarkFlagsMutuallyExclusive("keys", "keys-env")
}

// resolve checks the flags. If no flag says where the keys are, it uses the environment
// variable TRIPSEAL_KEYS if that is set.
func (k *keyFlags) resolve(cmd *cobra.Command) error {
	switch {
	case k.unwrap.Given() && k.file == "":
		return errors.New("--identity and --unwrap are for the file that --keys names")
	case cmd.Flags().Changed("keys-encoding") && k.variable == "":
		return errors.New("--keys-encoding is for the variable that --keys-env names")
	}
	if _, err := keys.ParseEncoding(k.encoding); err != nil {
		return fmt.Errorf("--keys-encoding: %s", strings.TrimPrefix(err.Error(), "keys: "))
	}
	if k.file == "" && k.variable == "" && strings.TrimSpace(os.Getenv(keys.Variable)) != "" {
		k.variable, k.implied = keys.Variable, true
	}
	return nil
}

func (k *keyFlags) given() bool { return k.file != "" || k.variable != "" }

// knownKeys has all keys from the file or the environment variable, including expired keys,
// and the phase of each key: whether it seals, only opens, or has expired, for example.
type knownKeys struct {
	ring   *tripseal.Ring
	phases map[tripseal.KeyID]keyuse.Phase
	file   *keyfile.Document // nil if the keys are from an environment variable
}

func (k *keyFlags) load(cmd *cobra.Command, at time.Time) (knownKeys, error) {
	if k.file == "" {
		return k.fromVariable()
	}
	return k.fromFile(cmd, at)
}

func (k *keyFlags) fromVariable() (knownKeys, error) {
	encoding, err := keys.ParseEncoding(k.encoding)
	if err != nil {
		return knownKeys{}, err
	}
	ring, err := keys.FromEnvironment(k.variable, encoding)
	if err != nil {
		hint := ""
		if k.implied {
			hint = "; if it holds other keys, give --keys, or --keys-env with --keys-encoding"
		}
		return knownKeys{}, cli.Failed("--keys-env: %s%s", strings.TrimPrefix(err.Error(), "keys: "), hint)
	}
	known := knownKeys{ring: ring, phases: make(map[tripseal.KeyID]keyuse.Phase)}
	for i, id := range ring.IDs() {
		known.phases[id] = keyuse.Opening
		if i == 0 {
			known.phases[id] = keyuse.Sealing
		}
	}
	return known, nil
}

func (k *keyFlags) fromFile(cmd *cobra.Command, at time.Time) (knownKeys, error) {
	d, err := keyfile.Read(k.file)
	if err != nil {
		return knownKeys{}, cli.Failed("%w", keyuse.FileError(k.file, err))
	}
	if k.unwrap.Lacks(d.Keys()) {
		return knownKeys{}, cli.Failed("%s: its secrets are wrapped: give --identity or --unwrap", cli.Named(k.file))
	}
	all, err := k.unwrap.Open(cmd, d.Keys())
	var exit *cli.ExitError
	if errors.As(err, &exit) {
		return knownKeys{}, err
	}
	if err != nil {
		return knownKeys{}, cli.Failed("%s: %w", cli.Named(k.file), err)
	}
	ring, err := tripseal.NewRing(all...)
	if err != nil {
		return knownKeys{}, cli.Failed("%s: %w", cli.Named(k.file), err)
	}
	known := knownKeys{ring: ring, phases: make(map[tripseal.KeyID]keyuse.Phase), file: d}
	schedule := d.Schedule()
	for _, key := range schedule {
		known.phases[key.ID] = keyuse.PhaseOf(key, schedule.SealerAt(at), at)
	}
	return known, nil
}
