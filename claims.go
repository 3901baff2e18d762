package mcpseal

// Claims is what a token says beside what it is bound to. Times are Unix time
// in milliseconds.
type Claims struct {
	Issued  int64 // when it was sealed; 0 where the format does not say
	Expires int64 // from when on it does not open

	Flow      [16]byte // names all rounds of one logical request; random
	FlowStart int64    // when the first round was sealed
	Round     int      // how many times this flow has been sealed, this token included

	Questions []Question // what this round asked

	// Arguments is what [Format.Digest] returns for the request's arguments. The
	// boundary sets it before Seal, and compares what Open returns.
	Arguments []byte

	State    string // what the handler wrote
	HasState bool   // false when it wrote nothing, which is not the same as ""
}
