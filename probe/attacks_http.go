package probe

// httpAttacks are the attacks that change the HTTP headers of a message.
var httpAttacks = []Attack{
	{
		ID: "old-version", Title: "A changed state with another version header", Severity: High, Section: headersMatch,
		Means:  "The server checks states only for the revision that the client claims. A client that claims another one is not checked.",
		Fix:    "Check every state that arrives, whatever the version header says.",
		AtMost: tries(10), Honest: 2, needs: needState | needHTTP, try: alter(func(*flow) (list []variant) {
			for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2099-01-01", ""} {
				what := "version " + version
				if version == "" {
					what = "no version"
				}
				for _, without := range []bool{false, true} {
					name := what
					if without {
						name += ", also in _meta"
					}
					list = append(list, variant{name, func(f *flow) message {
						m := f.retry.with("requestState", quoted(forged(f.state))).saying("Mcp-Protocol-Version", version)
						if without {
							m = m.without("_meta")
						}
						return m
					}})
				}
			}
			return list
		}),
	},
	{
		ID: "header-mismatch", Title: "Headers that name another method or target than the body does", Severity: Low, Section: headersMatch,
		Means:  "A gateway that routes or allows by header sees another request than the server runs.",
		Fix:    "Refuse a request whose Mcp-Method or Mcp-Name differs from its body.",
		AtMost: tries(2), Honest: 2, needs: needState | needHTTP, early: true, try: alter(func(*flow) []variant {
			return []variant{
				{"Mcp-Name of another target", func(f *flow) message { return f.retry.saying("Mcp-Name", "tripseal_probe") }},
				{"Mcp-Method of another method", func(f *flow) message { return f.retry.saying("Mcp-Method", "tools/list") }},
			}
		}),
	},
}
