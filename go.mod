module github.com/tripseal/tripseal

go 1.25.0
