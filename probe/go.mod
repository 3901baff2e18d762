module github.com/tripseal/tripseal/probe

go 1.25.0
