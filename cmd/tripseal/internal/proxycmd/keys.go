package proxycmd

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyuse"
	"github.com/tripseal/tripseal/keys"
)

// proxyKeys holds the flags that say where the keys of the proxy are. In this command, --identity
// says how users are known, so the flag for age identities is --age-identity.
type proxyKeys struct {
	keyuse.Source
	ephemeral bool
}

func (k *proxyKeys) flags(cmd *cobra.Command) {
	k.Flags(cmd, "age-identity", "the `FILE` of keys, which may change while the proxy runs",
		"the environment `VARIABLE` with the keys, such as "+keys.Variable)
	cmd.Flags().BoolVar(&k.ephemeral, "ephemeral", false, "seal with a random key that ends with this process")
	cmd.MarkFlagsMutuallyExclusive("keys", "keys-env", "ephemeral")
}

func (k *proxyKeys) check(cmd *cobra.Command) error {
	if k.File == "" && k.Variable == "" && !k.ephemeral {
		return errors.New("the keys are missing: give --keys FILE (tripseal keys new makes one), --keys-env VARIABLE, or --ephemeral to try things")
	}
	return cmd.ValidateFlagGroups() // cobra has seen only the flags of the command line
}

// open returns the keys, and a function that must be called when they are no longer needed.
func (k *proxyKeys) open(cmd *cobra.Command, logger *slog.Logger, observer func(keys.Event)) (source tripseal.KeySource, done func(), err error) {
	nothing := func() {}
	switch {
	case k.ephemeral:
		logger.Warn("proxy: --ephemeral seals with a key that only this process has: " +
			"after a restart, and at another replica, every token and cursor is rejected, and users must start over")
		return tripseal.Ephemeral(), nothing, nil
	case k.Variable != "":
		ring, err := k.FromVariable()
		return ring, nothing, err
	}
	options := keys.Options{Logger: logger, Observer: observer}
	if options.Unwrap, err = k.Unwrap.Unwrappers(cmd); err != nil {
		return nil, nothing, err
	}
	file, err := keys.OpenFile(k.File, &options)
	if err != nil {
		return nil, nothing, cli.Failed("--keys: %s", strings.TrimPrefix(err.Error(), "keys: "))
	}
	return file, func() { file.Close() }, nil
}
