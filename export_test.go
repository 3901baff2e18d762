package tripseal

// Number returns how many rounds came before this one. It is 0 on a first round, or if the
// token's format does not count rounds.
func (r *Round) Number() int { return r.claims.Round }
