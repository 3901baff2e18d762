package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

// Args are the arguments of the tool.
type Args struct {
	City string `json:"city" jsonschema:"where to fly"`
}

// Booking is the result of the tool.
type Booking struct {
	Number string `json:"number"`
	Text   string `json:"text"`
}

// The forms that the tool asks the user to fill in.
type (
	Passenger struct {
		Name string `json:"name" jsonschema:"your name"`
		Bags int    `json:"bags,omitempty" jsonschema:"how many bags, 0 to 2"`
	}
	Confirm struct {
		OK bool `json:"ok" jsonschema:"book it"`
	}
)

// offer is what the passenger will pay. It must not change between two rounds.
type offer struct {
	Number string `json:"number"`
	Price  int    `json:"price"`
}

// desk is where the flights are known, and where the user pays.
type desk struct {
	site string // the address of the page to pay at; "" means that there is none
	paid sync.Map
}

// flightsTo returns a form to choose a flight from: today's flights, which are known only at run time.
func (d *desk) flightsTo(city string) json.RawMessage {
	type choice struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}
	choices, err := json.Marshal([]choice{{"TS101", "09:10 to " + city}, {"TS205", "17:45 to " + city}})
	if err != nil {
		return nil
	}
	return json.RawMessage(`{"type":"object","properties":{"flight":{"type":"string","title":"Flight","oneOf":` + string(choices) + `}},"required":["flight"]}`)
}

// book is the handler of the tool, for both SDKs. It runs from its beginning in every round. If the user has already
// answered a question, book gets the answer at once. At the first question without an answer, book returns an error, and
// the call asks.
func (d *desk) book(_ context.Context, ask *elicit.Asker, in Args) (Booking, error) {
	// Two questions that do not depend on each other are sent in one round.
	who := elicit.Form[Passenger](ask, "passenger", "Who flies to "+in.City+"?")
	which := elicit.FormSchema(ask, "flight", "Which flight to "+in.City+"?", d.flightsTo(in.City))
	passenger, err := who.Value()
	if err != nil {
		return Booking{}, err
	}
	flight, err := which.Value()
	if err != nil {
		return Booking{}, err
	}
	if passenger.Bags < 0 || passenger.Bags > 2 { // the form checks the type of an answer; the handler checks its value
		return Booking{}, fmt.Errorf("a passenger has at most 2 bags")
	}
	// The price is computed once, after the answers that it depends on. Later rounds get the same offer.
	deal, err := elicit.Once(ask, "offer", func() (offer, error) {
		return offer{rand.Text()[:8], 120 + 30*passenger.Bags}, nil
	})
	if err != nil {
		return Booking{}, err
	}
	text := fmt.Sprintf("%s on flight %s to %s for %d", passenger.Name, flight["flight"], in.City, deal.Price)
	// Not every client can open a link. Then a second form takes its place.
	if d.site != "" && ask.Can(tripseal.KindURL) {
		consent := elicit.URL(ask, "pay", "Pay for "+text, d.site+"/pay/"+deal.Number)
		if _, err := consent.Value(); err != nil {
			return Booking{}, err
		}
		if _, done := d.paid.Load(deal.Number); !done {
			return Booking{}, consent.NotYet() // the user agreed to open the page, and has not paid there yet
		}
		return Booking{deal.Number, "booked " + text}, nil
	}
	confirm, err := elicit.Form[Confirm](ask, "confirm", "Book "+text+"?").Value()
	if err != nil {
		return Booking{}, err
	}
	if !confirm.OK {
		return Booking{}, fmt.Errorf("nothing was booked")
	}
	return Booking{deal.Number, "booked " + text}, nil
}
