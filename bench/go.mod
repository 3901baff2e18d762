module github.com/mcpseal/mcpseal/bench

go 1.26

require (
	aidanwoods.dev/go-paseto v1.6.0
	github.com/go-jose/go-jose/v4 v4.1.6
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/gorilla/securecookie v1.1.2
	github.com/gowebpki/jcs v1.0.2
	github.com/mcpseal/mcpseal v0.0.0
)

require (
	aidanwoods.dev/go-result v0.3.1 // indirect
	golang.org/x/crypto v0.46.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
)

replace github.com/mcpseal/mcpseal => ../
