package mcpgo

// LimitTaskTexts changes how many bytes of arguments are kept for all tasks together. It returns
// a function that undoes the change.
func LimitTaskTexts(limit int) (undo func()) {
	tasks.mu.Lock()
	defer tasks.mu.Unlock()
	before := tasks.limit
	tasks.limit = limit
	return func() { LimitTaskTexts(before) }
}

// ForgetSharedStdio forgets that two connections have shared the stdio session. Older clients
// over stdio are then asked again.
func ForgetSharedStdio() {
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	stdioServers.begun, stdioServers.latest, stdioServers.shared = nil, nil, false
}
