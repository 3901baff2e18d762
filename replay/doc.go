// Package replay makes tokens work once, as far as one process can tell:
//
//	store, err := replay.NewSingleProcess(replay.Config{})
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// Use it where exactly one process opens the tokens. Two replicas with a store
// each accept a token twice, once each: they need one that they share, such as
// that of package redisreplay. So do two processes that overlap in a rolling
// restart.
//
// The store never forgets a use to make room for another. What it cannot
// remember, or cannot know, it refuses:
//
//   - When it is full, every new token is refused until old ones expire. Tokens
//     that were used are still recognised.
//   - One user holds at most a tenth of it, so that one cannot fill it for all;
//     in each boundary, where several use the store. Without users (stdio, no
//     authentication) all tokens are nobody's, and nobody has no such bound: it
//     would be the bound of the whole server. Where calls with and without a user
//     mix, those without can fill the store for all: set
//     [mcpseal.Config.RequirePrincipal].
//   - A token that was issued before the store started may have been used: users
//     who were asked something when the process restarted start over.
//   - So they do when the clock leaps ahead by more than a minute, or the machine
//     slept for longer. The clock may have been behind when the store started, and
//     tokens of the process before would then seem to be issued after that.
//   - When the clock is set back, tokens may be valid again whose use is forgotten.
//     Those are refused, and with them, if it was set back by more than a
//     token's lifetime, fresh ones, until the clock has caught up or the process
//     is restarted.
//
// A use is forgotten when both the clock that can be set and the one that cannot
// say that it is over.
//
// A use takes less than 100 bytes. As uses expire, and others follow, their memory
// goes back to the collector, but for some KiB in each of 32 parts. A claim removes
// at most 64 that are over, and more only where there is no room;
// [SingleProcess.Level] removes all.
package replay
