package mcpgo

// Serve is ServeStdio on other streams.
var Serve = serve
