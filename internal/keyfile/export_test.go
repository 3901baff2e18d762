package keyfile

import "time"

// EndsOfSealing returns, for each key except the last one, the time at which it stops sealing.
func EndsOfSealing(d *Document) (ends []time.Time) {
	for _, end := range d.endsOfSealing(d.Schedule()) {
		ends = append(ends, end.at)
	}
	return ends
}

// MakeRoom lets every key open tokens until the last one that it sealed has expired.
func MakeRoom(d *Document, now time.Time, room Room) { d.makeRoom(now, room) }
