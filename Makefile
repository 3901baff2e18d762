.PHONY: proof proxy model fleet image check test bench fuzz mutate rules proxydiff peers vectors release release-check

check: ## everything that CI checks
	.ci/run

test: ## all tests of all modules
	go test work

bench: ## against the floor and against what one would use instead
	cd test/bench && go run .

fuzz: ## five minutes for every fuzz target
	FUZZTIME=5m .ci/run

mutate: ## 10,000 mutated requests for every example server, with the race detector
	TRIPSEAL_MUTATIONS=10000 go test -race -count 1 -timeout 10m -run "^TestTheServerSurvivesMutatedRequests$$" -v ./test/conformance ./examples/deploy ./examples/booking ./examples/pages

rules: ## take every rule out of the proxy in turn, and see its tests fail
	go run ./test/rules

proxy: ## the proxy in front of servers on three SDKs: conformance, clients, attacks, users, probe
	test/proxy/run

model: ## a million steps of a fleet whose keys rotate
	TRIPSEAL_MODEL_STEPS=1000000 go test -count 1 -v -run "^TestModelOfRotation$$" ./keys

fleet: ## three proxies behind a balancer: rotations, replicas that end, and one Redis
	TRIPSEAL_FLOWS=500 go test -count 1 -timeout 10m -v \
		-run "^(TestNoFlowFailsWhileKeysRotateAndReplicasEnd|TestOneTokenWorksOnceInAFleet)$$" ./cmd/tripseal

image: ## the container image, into .cache/image
	deploy/image

proxydiff: ## five minutes of mutated messages through the proxy, read by Python and Node
	test/proxydiff/run 5m

peers: ## servers on other SDKs, for the probe; the one on rmcp takes minutes to build
	test/peers/probed/run all

proof: ## the page that compares the demo's server without and with protection
	go run ./test/proof docs/proof/index.html

vectors: ## mint the fixed tokens and cursors anew
	go test -run "^TestVectors$$" . ./cursor -update

VERSION = v$(shell sed -n 's/^const releaseVersion = "\(.*\)"$$/\1/p' cmd/tripseal/version.go)

release: ## try the release as a user would, and write its binaries to dist; publishes nothing
	scripts/release $(VERSION)
	rm -rf dist
	scripts/binaries $(VERSION) dist

release-check: ## build all binaries of a release twice, and compare them
	scripts/reproduce
