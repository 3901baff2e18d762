package mcpseal

// Number returns how many rounds came before: 0 on a first round, and where the
// token's format does not count them.
func (r *Round) Number() int { return r.claims.Round }
