package redisreplay

// Script is what the store runs in the server.
var Script = script
