// Package replay makes each token work only once within one process:
//
//	store, err := replay.NewSingleProcess(replay.Config{})
//	…
//	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// Use this package if exactly one process opens the tokens. If two replicas each have a
// store of their own, each of them accepts a token once, so the token works twice. The same
// happens with two processes that overlap in a rolling restart. In these cases use a shared
// store, such as that of package redisreplay.
//
// The store never forgets a used token to make room for another. It refuses a token if it
// has no room to remember the token, or cannot know whether the token was used:
//
//   - When the store is full, every new token is refused until old ones expire. Used tokens
//     are still recognised.
//   - The tokens that one user has at one boundary fill at most a tenth of the store. Calls
//     without a user have no such limit, because all of them would share it. If only some
//     calls have a user, set [tripseal.Config.RequireUser]. Otherwise calls without a user can fill
//     the whole store, and then the tokens of all users are refused.
//   - A token that was issued before the store started is refused, because it may have been
//     used. A user who had not yet answered a question when the process restarted must start
//     over.
//   - Users must also start over when the clock leaps ahead by more than a minute. The
//     reason is that the clock may have been behind when the store started. If so, tokens of
//     the previous process may look newer than the store. If the machine sleeps for more than
//     a minute, the store sees this as such a leap.
//   - The store forgets a used token when it has expired. If the clock is then set back to before
//     this expiry, the store still refuses the token, because it has noted the latest expiry of all
//     tokens that it forgot. If the clock was set back by more than a token's lifetime, new tokens
//     may be refused too. This ends when the clock has caught up or the process is restarted.
//
// A use is kept until both the wall clock and the monotonic clock are past its expiry. A use
// takes less than 100 bytes of memory while the number of uses grows, and less than 120
// while it shrinks. The memory of removed uses is freed.
// [SingleProcess.Spend] removes at most 64 expired uses. It removes more only if it finds no
// room for a use, or if the store seems to be at least 80% full. [SingleProcess.Level]
// removes all expired uses.
package replay
