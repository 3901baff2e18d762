// Package replay makes each token work only once within one process:
//
//	store, err := replay.NewSingleProcess(replay.Config{})
//	…
//	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// Use it if exactly one process opens the tokens. With two replicas, or with two processes that
// overlap in a rolling restart, a token works once in each: use package redisreplay or pgreplay.
//
// The store refuses a token if it has no room to remember it, or cannot know whether it was used:
//
//   - When the store is full, every new token is refused until old ones expire. Used tokens
//     are still recognised. The tokens of one user at one boundary fill at most a tenth of the store.
//     Calls without a user have no such limit: if only some calls have a user, set
//     [tripseal.Config.RequireUser].
//   - A token that was issued before the store started is refused: whoever had not answered a
//     question when the process restarted must start over. The same happens when the clock leaps
//     ahead by more than a minute, because it may have been behind when the store started. A
//     machine that sleeps for more than a minute is such a leap.
//   - If the clock is set back to before the expiry of a use that was forgotten, the token is
//     still refused. So new tokens may be refused too, until the clock has caught up.
package replay
