package sealtest

import "testing"

// AdapterPromises returns the names of all promises of adapters.
func AdapterPromises() (names []string) {
	for _, promise := range adapterPromises() {
		names = append(names, promise.name)
	}
	return names
}

// AdapterFailures tests one promise, and returns in what ways the adapter breaks it.
func AdapterFailures(t *testing.T, name string, start func(*testing.T, AdapterServer) AdapterClient) []string {
	for _, promise := range adapterPromises() {
		if promise.name == name {
			return promise.run(t, start, AdapterLimits{})
		}
	}
	t.Fatalf("there is no promise %q", name)
	return nil
}
