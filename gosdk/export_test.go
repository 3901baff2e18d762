package gosdk

// PromptArguments is the text that is digested for a prompt's arguments.
func PromptArguments(arguments map[string]string) []byte { return appendStrings(nil, arguments) }

// TokenInfo is the access token that counts for a request.
var TokenInfo = tokenInfo
