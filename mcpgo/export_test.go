package mcpgo

// LimitTaskTexts changes how many bytes the arguments of tasks may have together, and returns a
// function that undoes this.
func LimitTaskTexts(limit int) (undo func()) {
	tasks.mu.Lock()
	defer tasks.mu.Unlock()
	before := tasks.limit
	tasks.limit = limit
	return func() { LimitTaskTexts(before) }
}

// ForgetSharedStdio lets older clients over stdio be asked again.
func ForgetSharedStdio() {
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	stdioServers.begun, stdioServers.latest, stdioServers.shared = nil, nil, false
}
