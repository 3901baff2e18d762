package inspectcmd

import (
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

// keyFlags holds the flags that say where the keys are.
type keyFlags struct {
	keyuse.Source
	implied bool // true if the keys come from TRIPSEAL_KEYS and no flag names this variable
}

func (k *keyFlags) flags(cmd *cobra.Command) {
	k.Flags(cmd, "identity", "the `FILE` with the key that sealed the token",
		"the environment `VARIABLE` with the key that sealed the token (default "+keys.Variable+", if it is set)")
	cmd.MarkFlagsMutuallyExclusive("keys", "keys-env")
}

// resolve uses the environment variable TRIPSEAL_KEYS if that is set and no flag says where the keys are.
func (k *keyFlags) resolve() {
	if k.File == "" && k.Variable == "" && strings.TrimSpace(os.Getenv(keys.Variable)) != "" {
		k.Variable, k.implied = keys.Variable, true
	}
}

func (k *keyFlags) given() bool { return k.File != "" || k.Variable != "" }

// knownKeys has all keys from the file or the environment variable, including expired keys,
// and the phase of each key: whether it seals, only opens, or has expired, for example.
type knownKeys struct {
	ring   *tripseal.Ring
	phases map[tripseal.KeyID]keyuse.Phase
	file   *keyfile.Document // nil if the keys are from an environment variable
}

func (k *keyFlags) load(cmd *cobra.Command, at time.Time) (knownKeys, error) {
	if k.File == "" {
		return k.fromVariable()
	}
	return k.fromFile(cmd, at)
}

func (k *keyFlags) fromVariable() (knownKeys, error) {
	ring, err := k.FromVariable()
	if err != nil && k.implied {
		return knownKeys{}, cli.Failed("%w; if it holds other keys, give --keys, or --keys-env with --keys-encoding", err)
	}
	if err != nil {
		return knownKeys{}, err
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
	d, err := keyfile.Read(k.File)
	if err != nil {
		return knownKeys{}, cli.Failed("%w", keyuse.FileError(k.File, err))
	}
	all, err := k.Unwrap.Open(cmd, k.File, d.Keys())
	if err != nil {
		return knownKeys{}, cli.Failed("%w", err)
	}
	ring, err := tripseal.NewRing(all...)
	if err != nil {
		return knownKeys{}, cli.Failed("%s: %w", cli.Named(k.File), err)
	}
	known := knownKeys{ring: ring, phases: make(map[tripseal.KeyID]keyuse.Phase), file: d}
	schedule := d.Schedule()
	for _, key := range schedule {
		known.phases[key.ID] = keyuse.PhaseOf(key, schedule.SealerAt(at), at)
	}
	return known, nil
}
