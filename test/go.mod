module github.com/tripseal/tripseal/test

go 1.25.5

require (
	aidanwoods.dev/go-paseto v1.6.0
	github.com/go-jose/go-jose/v4 v4.1.7
	github.com/go-json-experiment/json v0.0.0-20251027170946-4849db3c2f7e
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/google/jsonschema-go v0.4.3
	github.com/gorilla/securecookie v1.1.2
	github.com/gowebpki/jcs v1.0.2
	github.com/jackc/pgx/v5 v5.12.0
	github.com/mark3labs/mcp-go v1.2.1
	github.com/modelcontextprotocol/go-sdk v1.8.0
	github.com/prometheus/client_golang v1.24.1
	github.com/redis/go-redis/v9 v9.22.0
	github.com/tripseal/tripseal v0.0.0
	github.com/tripseal/tripseal/cmd/tripseal v0.0.0
	github.com/tripseal/tripseal/compat/atd v0.0.0
	github.com/tripseal/tripseal/gosdk v0.0.0
	github.com/tripseal/tripseal/mcpgo v0.0.0
	github.com/tripseal/tripseal/otelseal v0.0.0
	github.com/tripseal/tripseal/probe v0.0.0
	github.com/tripseal/tripseal/replay/pgreplay v0.0.0
	github.com/tripseal/tripseal/replay/redisreplay v0.0.0
	go.opentelemetry.io/otel v1.46.0
	go.opentelemetry.io/otel/exporters/prometheus v0.68.0
	go.opentelemetry.io/otel/sdk v1.46.0
	go.opentelemetry.io/otel/sdk/metric v1.46.0
	go.opentelemetry.io/otel/trace v1.46.0
	go.yaml.in/yaml/v3 v3.0.5
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
)

require (
	aidanwoods.dev/go-result v0.3.1 // indirect
	filippo.io/age v1.3.2 // indirect
	filippo.io/hpke v0.4.0 // indirect
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.21 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/otlptranslator v1.0.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/rhysd/actionlint v1.7.12 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/spf13/cast v1.7.1 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/tripseal/tripseal/keys/agekeys v0.0.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/metric v1.46.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.3 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/mod v0.39.0 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	honnef.co/go/tools v0.7.0 // indirect
)

replace (
	github.com/tripseal/tripseal => ..
	github.com/tripseal/tripseal/cmd/tripseal => ../cmd/tripseal
	github.com/tripseal/tripseal/compat/atd => ../compat/atd
	github.com/tripseal/tripseal/gosdk => ../gosdk
	github.com/tripseal/tripseal/keys/agekeys => ../keys/agekeys
	github.com/tripseal/tripseal/mcpgo => ../mcpgo
	github.com/tripseal/tripseal/otelseal => ../otelseal
	github.com/tripseal/tripseal/probe => ../probe
	github.com/tripseal/tripseal/replay/pgreplay => ../replay/pgreplay
	github.com/tripseal/tripseal/replay/redisreplay => ../replay/redisreplay
)

tool (
	github.com/rhysd/actionlint/cmd/actionlint
	github.com/tripseal/tripseal/cmd/tripseal
	honnef.co/go/tools/cmd/staticcheck
)
