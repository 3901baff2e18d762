// Package replay makes each token work only once within one process:
//
//	store, err := replay.NewSingleProcess(replay.Config{})
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// Use it if exactly one process opens the tokens. Two replicas that each have a store
// accept a token twice, once each. So do two processes that overlap in a rolling
// restart. They need a shared store, such as that of package redisreplay.
//
// The store never forgets a used token to make room for another. It refuses a token if it
// has no room to remember it, or cannot know whether the token was used:
//
//   - When it is full, every new token is refused until old ones expire. Used tokens
//     are still recognised.
//   - One user holds at most a tenth of the store, in each boundary that uses it. Calls
//     without a user have no such limit: it would limit the whole server. If there are
//     calls of both kinds, set [mcpseal.Config.RequireUser]; otherwise those without a
//     user can fill the store for all.
//   - A token that was issued before the store started is refused, because it may have
//     been used. Users who were being asked when the process restarted start over.
//   - Users also start over when the clock leaps ahead by more than a minute, or when the
//     machine slept for longer than that. The clock may have been behind when the store
//     started, and tokens of the previous process would then seem to be issued later.
//   - When the clock is set back, a token whose use was forgotten may be valid again.
//     Such tokens are refused. If the clock was set back by more than a token's
//     lifetime, new tokens are refused too, until the clock has caught up or the process
//     is restarted.
//
// A use is kept until both the wall clock and the monotonic clock are past its expiry.
// It takes less than 100 bytes while the store fills, and less than 120 while it
// drains: memory goes back to the garbage collector. Spend removes at most 64 expired
// uses, and more only if there is no room; [SingleProcess.Level] removes all.
package replay
