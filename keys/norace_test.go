//go:build !race

package keys_test

// reloads is how often TestReloadsUnderLoad replaces the file. With the race detector, the number is
// ten times as high.
const reloads = 1_000
