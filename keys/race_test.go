//go:build race

package keys_test

// reloads is how often TestReloadsUnderLoad replaces the file.
const reloads = 10_000
