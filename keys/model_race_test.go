//go:build race

package keys

const defaultModelSteps = 100_000
