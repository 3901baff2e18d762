module github.com/mcpseal/mcpseal/probe

go 1.25.0
