package tripseal

// Number returns how many rounds came before this one. It is 0 on a first round, or if the
// token's format does not count rounds.
func (r *Round) Number() int { return r.claims.Round }

// Seals returns how many values the key with this id has sealed for a purpose in this process.
func (r *Ring) Seals(id KeyID, purpose Purpose) uint64 {
	return r.keys.sealers[id][purpose].seals.Load()
}

// Waived returns the claims that the boundary does without for the token's format.
func (r *Round) Waived() ClaimSet { return r.waived }
