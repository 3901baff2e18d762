package mcpgo

// ForgetSharedStdio forgets the stdio sessions that have begun. Older clients over stdio are then
// asked again.
func ForgetSharedStdio() {
	stdioBegan.Store(false)
	stdioBeganAgain.Store(false)
}
