//go:build !race

package keys

const defaultModelSteps = 1_000_000
