package mcpgo

// ForgetSharedStdio forgets that two connections have shared the stdio session. Older clients
// over stdio are then asked again.
func ForgetSharedStdio() {
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	stdioServers.begun, stdioServers.latest, stdioServers.shared = nil, nil, false
}
