//go:build !race

package keys_test

// reloads is how often a file is replaced under load: often only where the race
// detector looks on.
const reloads = 1_000
