module github.com/mcpseal/mcpseal/interop

go 1.25.0

require (
	github.com/mcpseal/mcpseal v0.0.0
	github.com/mcpseal/mcpseal/compat/atd v0.0.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)

replace (
	github.com/mcpseal/mcpseal => ..
	github.com/mcpseal/mcpseal/compat/atd => ../compat/atd
)
