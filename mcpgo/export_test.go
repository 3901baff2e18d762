package mcpgo

// ForgetSharedStdio lets older clients over stdio be asked again.
func ForgetSharedStdio() {
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	stdioServers.begun, stdioServers.latest, stdioServers.shared = nil, nil, false
}
