module github.com/mcpseal/mcpseal

go 1.25.0
