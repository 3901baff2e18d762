module github.com/tripseal/tripseal/bench

go 1.25.5

require (
	aidanwoods.dev/go-paseto v1.6.0
	github.com/go-jose/go-jose/v4 v4.1.6
	github.com/go-json-experiment/json v0.0.0-20251027170946-4849db3c2f7e
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/gorilla/securecookie v1.1.2
	github.com/gowebpki/jcs v1.0.2
	github.com/mark3labs/mcp-go v1.2.1
	github.com/tripseal/tripseal v0.0.0
	github.com/tripseal/tripseal/compat/atd v0.0.0
	github.com/tripseal/tripseal/gosdk v0.0.0
	github.com/tripseal/tripseal/mcpgo v0.0.0
	github.com/tripseal/tripseal/replay/redisreplay v0.0.0
	github.com/modelcontextprotocol/go-sdk v1.8.0
	github.com/redis/go-redis/v9 v9.22.0
)

require (
	aidanwoods.dev/go-result v0.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/spf13/cast v1.7.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/oauth2 v0.35.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace (
	github.com/tripseal/tripseal => ..
	github.com/tripseal/tripseal/compat/atd => ../compat/atd
	github.com/tripseal/tripseal/gosdk => ../gosdk
	github.com/tripseal/tripseal/mcpgo => ../mcpgo
	github.com/tripseal/tripseal/replay/redisreplay => ../replay/redisreplay
)
