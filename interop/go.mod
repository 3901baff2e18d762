module github.com/tripseal/tripseal/interop

go 1.25.0

require (
	github.com/tripseal/tripseal v0.0.0
	github.com/tripseal/tripseal/compat/atd v0.0.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)

replace (
	github.com/tripseal/tripseal => ..
	github.com/tripseal/tripseal/compat/atd => ../compat/atd
)
