// Package replay makes tokens work once, as far as one process can tell:
//
//	store, err := replay.NewSingleProcess(replay.Config{})
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// Use it where exactly one process opens the tokens. Two replicas with a store each
// accept a token twice, once each, and so do two processes that overlap in a rolling
// restart: they need a store that they share, such as that of package redisreplay.
//
// The store never forgets a use to make room for another. What it cannot remember, or
// cannot know, it refuses:
//
//   - When it is full, every new token is refused until old ones expire. Used tokens
//     are still recognised.
//   - One user holds at most a tenth of it, in each boundary that uses it. Calls
//     without a user have no such limit: it would limit the whole server. Where both
//     kinds mix, set [mcpseal.Config.RequireUser], or those without a user can
//     fill the store for all.
//   - A token that was issued before the store started may have been used. Users who
//     were asked something when the process restarted start over.
//   - They also start over when the clock leaps ahead by more than a minute, or the
//     machine slept for longer. The clock may have been behind when the store started,
//     and tokens of the process before would then seem to be issued after that.
//   - When the clock is set back, a token may be valid again whose use is forgotten.
//     Such tokens are refused. If the clock was set back by more than a token's
//     lifetime, fresh ones are refused too, until it has caught up or the process is
//     restarted.
//
// A use is kept until both the wall clock and the monotonic clock are past its expiry.
// It takes less than 100 bytes while the store fills, and less than 120 while it
// drains: memory goes back to the collector.
// Spend removes at most 64 expired uses, and more only where there is no room;
// [SingleProcess.Level] removes all.
package replay
