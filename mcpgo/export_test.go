package mcpgo

// ForgetSharedStdio forgets how many stdio sessions have begun in this process. After that,
// handlers can again send questions to older clients over stdio.
func ForgetSharedStdio() {
	stdioBegan.Store(false)
	stdioBeganAgain.Store(false)
}
