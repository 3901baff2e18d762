//go:build race

package keys_test

// reloads is how often a file is replaced under load.
const reloads = 10_000
