SHELL = bash
.PHONY: check test long bench asking fuzz mutate conformance model rotation forget stores valkey fleet rules mutants proxy image proxydiff peers vectors release dist release-tools

check: ## everything that CI checks
	.ci/run

test: ## all tests of all modules
	go test work

bench: ## against the floor and against what one would use instead
	cd test/bench && go run .

long: asking fuzz mutate conformance model fleet rotation forget stores valkey rules mutants proxy proxydiff peers release ## everything that takes longer than CI may

fuzz: ## a minute for every fuzz target
	test/fuzz 1m

mutate: ## 10,000 mutated requests for a server on each SDK, with the race detector
	TRIPSEAL_MUTATIONS=10000 go test -race -count 1 -timeout 10m -run '^TestTheServerSurvivesMutatedRequests$$' -v ./test/conformance

conformance: ## the whole conformance suite, with and without a door
	test/conformance/run whole

rules: ## take every rule out of the proxy in turn, and see its tests fail
	go run ./test/rules test/rules/engine.txt
	go run ./test/rules test/rules/pipe.txt

mutants: ## take every check out of the core in turn, and see its tests fail
	go run ./test/rules test/rules/core.txt

proxy: ## the proxy and the doors, with clients and servers on several SDKs: conformance, attacks, users, probe
	test/proxy/run

model: ## a million steps of a fleet whose keys rotate
	TRIPSEAL_MODEL_STEPS=1000000 go test -count 1 -v -run "^TestModelOfRotation$$" ./keys

rotation: ## two rotations of the keys of three replicas under load, 50,000 flows
	TRIPSEAL_FLOWS=50000 go test -count 1 -timeout 10m -v -run "^TestRotationUnderLoad$$" ./test/rotation

forget: ## every way in which a Redis forgets used tokens
	. test/install/redis && TRIPSEAL_FORGET=2s go test -count 1 -timeout 20m -v -run "^TestWhatRedisForgetsIsRefused$$" ./replay/redisreplay

stores: ## 10,000 tokens from eight callers, and money that moves, while processes are killed, in Redis and PostgreSQL
	. test/install/redis && . test/install/postgres && TRIPSEAL_TOKENS=10000 TRIPSEAL_KILLS=200 \
		go test -count 1 -timeout 20m -v ./test/stores

valkey: ## single use with Valkey
	. test/install/valkey && go test -count 1 ./replay/redisreplay

fleet: ## three proxies behind a balancer: rotations, replicas that end, and one Redis
	TRIPSEAL_FLOWS=500 go test -count 1 -timeout 10m -v \
		-run "^(TestNoFlowFailsWhileKeysRotateAndReplicasEnd|TestOneTokenWorksOnceInAFleet)$$" ./cmd/tripseal

image: ## the container image, into .cache/image
	deploy/image

asking: ## a minute of random handlers that ask, with random clients, on no SDK and on both
	TRIPSEAL_CALLS=50000 go test -count 1 -timeout 10m -v -run "^(TestWhatARunUsesGoesTogether|TestTheSameHandlerGivesTheSameRoundsOnBothSDKs)$$" ./elicit ./test/asking

proxydiff: ## five minutes of mutated messages through the proxy, read by Python and Node
	test/proxydiff/run 5m

peers: ## servers on other SDKs, for the probe; the one on rmcp takes minutes to build
	test/peers/probed/run all

vectors: ## mint the fixed tokens, cursors and handles anew
	go test -run "^Test(Handle)?Vectors$$" . ./cursor -update

release: release-tools ## rehearse a release, and write its files into dist; publishes nothing
	test/release/run

dist: release-tools ## at a tag: write the files of the release into dist
	GORELEASER_CURRENT_TAG=$$(git describe --tags --exact-match --match 'v*') goreleaser release --clean

# The SBOMs contain the checksum of the tool that wrote them. So it is built in the same way on every machine.
release-tools: export GOBIN = $(CURDIR)/.cache/bin
release-tools:
	GOWORK=off CGO_ENABLED=0 go install -trimpath github.com/goreleaser/goreleaser/v2@v2.16.0
	GOWORK=off CGO_ENABLED=0 go install -trimpath github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

release dist: export PATH := $(CURDIR)/.cache/bin:$(PATH)
