.PHONY: check test bench fuzz vectors

check: ## everything that CI checks
	.ci/run

test:
	go test ./...

bench: ## against the floor and against what one would use instead
	cd bench && go run .

fuzz: ## five minutes for every fuzz target
	FUZZTIME=5m .ci/run

vectors: ## mint the fixed tokens and cursors anew
	go test -run "^TestVectors$$" . ./cursor -update
