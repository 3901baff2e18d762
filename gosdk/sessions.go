package gosdk

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// evictionTime limits how long a new session waits until a displaced session has ended.
const evictionTime = 5 * time.Second

// sessions is the table of all sessions of older clients: it knows who opened each
// session, and limits how many sessions there are.
type sessions struct {
	perUser int

	mu        sync.Mutex
	byID      map[string]*session
	everyone  crowd
	anonymous crowd
	users     map[string]*crowd // the sessions of each user, by the user's name; a user without sessions is not in it
}

// crowd is a group of sessions with a limit: all sessions, the sessions of one user, or the
// sessions of all anonymous callers.
type crowd struct {
	name  string // the name of the option that sets the limit
	limit int    // negative means no limit
	count int    // how many sessions there are; a session is counted from just before the SDK makes it until the SDK has closed it
	// spare lists the sessions that may be displaced. The first one was unused for the longest
	// time.
	spare list.List
}

func (c *crowd) full() bool { return c.limit >= 0 && c.count >= c.limit }

// session is a session that is open, or about to be. sessions.mu guards it.
type session struct {
	user  string
	owner *crowd
	id    string             // "" until the SDK has made the session
	sdk   *mcp.ServerSession // the SDK's session; nil until the SDK has made it

	isInitialized bool
	running       int              // how many HTTP requests of the session are being served
	spare         [2]*list.Element // the session's places in owner.spare and in everyone.spare; nil if it may not be displaced
	isEnded       bool
	ended         chan struct{}

	alive   context.Context    // the session's calls are cancelled when this context is done
	stop    context.CancelFunc // cancels alive
	deletes int                // how many DELETE requests of the session are being served
}

func newSessions(all, perUser, anonymous int) *sessions {
	all, perUser = orDefault(all, defaultSessions), orDefault(perUser, defaultPerUser)
	half := all
	if all > 0 {
		half = (all + 1) / 2
	}
	return &sessions{
		perUser:   perUser,
		byID:      make(map[string]*session),
		everyone:  crowd{name: "MaxSessions", limit: all},
		anonymous: crowd{name: "MaxAnonymousSessions", limit: orDefault(anonymous, half)},
		users:     make(map[string]*crowd),
	}
}

func orDefault(value, zero int) int {
	if value == 0 {
		return zero
	}
	return value
}

// open makes a new session with one running request, counts the session towards the
// limits, and returns it. If a limit is reached, it ends another session to make room.
// If it cannot make room, it returns nil and the name of the limit.
func (s *sessions) open(ctx context.Context, user string) (opening *session, limit string) {
	opening, victim, limit := s.tryOpen(user)
	if victim == nil {
		return opening, limit
	}
	ctx, cancel := context.WithTimeout(ctx, evictionTime)
	defer cancel()
	for victim != nil {
		go victim.sdk.Close() // in the background: Close waits for the calls that the session still runs
		select {
		case <-victim.ended:
		case <-ctx.Done():
			return nil, limit
		}
		opening, victim, limit = s.tryOpen(user) // may fail again, because another request may have taken the free place
	}
	return opening, limit
}

// tryOpen makes a new session, counts it and returns it. If a limit is reached, it makes
// no session: it returns the name of the limit, and the session to displace (victim).
// The victim is nil if no session may be displaced.
func (s *sessions) tryOpen(user string) (opening, victim *session, limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := s.crowdOf(user)
	var candidates []*crowd
	switch {
	case owner.full():
		limit, candidates = owner.name, []*crowd{owner}
	case !s.everyone.full():
		owner.count++
		s.everyone.count++
		if user != "" {
			s.users[user] = owner
		}
		opening = &session{user: user, owner: owner, running: 1, ended: make(chan struct{})}
		opening.alive, opening.stop = context.WithCancel(context.Background())
		return opening, nil, ""
	case user == "":
		limit, candidates = s.everyone.name, []*crowd{owner}
	default:
		limit, candidates = s.everyone.name, []*crowd{&s.anonymous, owner, &s.everyone}
	}
	for _, c := range candidates {
		if oldest := c.spare.Front(); oldest != nil {
			victim = oldest.Value.(*session)
			s.withdraw(victim)
			victim.stop()
			break
		}
	}
	return nil, victim, limit
}

func (s *sessions) crowdOf(user string) *crowd {
	if user == "" {
		return &s.anonymous
	}
	if owner := s.users[user]; owner != nil {
		return owner
	}
	return &crowd{name: "MaxSessionsPerUser", limit: s.perUser}
}

// link connects a new session with the SDK's session that has this id. If there is no
// new session (nil), or if the id is already in use, link closes the SDK's session
// instead.
func (s *sessions) link(opening *session, id string, server *mcp.Server) {
	if id == "" || server == nil {
		return
	}
	var made []*mcp.ServerSession
	for candidate := range server.Sessions() {
		if candidate.ID() == id {
			made = append(made, candidate)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if opening == nil || len(made) != 1 || s.byID[id] != nil {
		for _, m := range made {
			go m.Close()
		}
		return
	}
	opening.id, opening.sdk = id, made[0]
	s.byID[id] = opening
	go s.watch(opening)
}

// watch waits until the SDK has closed a session, for whatever reason. Then watch calls
// s.end.
func (s *sessions) watch(watched *session) {
	watched.sdk.Wait()
	watched.sdk.Close() // needed for a broken session: otherwise the SDK's handler never forgets it
	s.end(watched)
}

// beginRequest is called when a request on a session begins. It returns the session,
// and whether the client has sent notifications/initialized. It returns nil if this
// user has no session with this id.
func (s *sessions) beginRequest(id, user string) (entered *session, isInitialized bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entered = s.byID[id]
	if entered == nil || entered.user != user {
		return nil, false
	}
	entered.running++
	s.unspare(entered)
	return entered, entered.isInitialized
}

// exists reports whether any user has a session with this id.
func (s *sessions) exists(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id] != nil
}

// endOpening is called when the request that opens a session has ended. A session is counted before
// the SDK makes it. If the SDK has not made it, endOpening takes it out of the counts again.
func (s *sessions) endOpening(opening *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if opening.sdk == nil {
		s.endLocked(opening)
	}
	s.endRequestLocked(opening)
}

func (s *sessions) endRequest(left *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endRequestLocked(left)
}

func (s *sessions) endRequestLocked(left *session) {
	left.running--
	if left.running > 0 || left.isInitialized || s.byID[left.id] != left {
		return
	}
	for i, c := range []*crowd{left.owner, &s.everyone} {
		left.spare[i] = c.spare.PushBack(left)
	}
}

// aliveOf returns a context. The session's calls are cancelled when this context is
// done.
func (s *sessions) aliveOf(session *session) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session.alive
}

// stopCalls cancels the calls of a session, and all calls that begin on it before
// allowCalls is called.
func (s *sessions) stopCalls(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.deletes++
	session.stop()
}

// allowCalls undoes stopCalls: calls may run on the session again, unless the SDK has
// ended the session. If another DELETE is being served, the SDK may still be waiting
// for the session's calls, so these calls stay cancelled.
func (s *sessions) allowCalls(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.deletes--
	if session.deletes == 0 && !session.isEnded {
		session.alive, session.stop = context.WithCancel(context.Background())
	}
}

// markInitialized is called when the client has sent notifications/initialized.
func (s *sessions) markInitialized(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.isInitialized = true
}

// end is called when the SDK has closed a session. From then on, the session is not
// counted.
func (s *sessions) end(ended *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(ended)
}

func (s *sessions) endLocked(ended *session) {
	if ended.isEnded {
		return
	}
	ended.isEnded = true
	s.withdraw(ended)
	s.everyone.count--
	if ended.owner.count--; ended.owner.count == 0 {
		delete(s.users, ended.user)
	}
	ended.stop()
	close(ended.ended)
}

// withdraw makes a session unknown to clients: beginRequest no longer finds it.
func (s *sessions) withdraw(withdrawn *session) {
	s.unspare(withdrawn)
	if s.byID[withdrawn.id] == withdrawn {
		delete(s.byID, withdrawn.id)
	}
}

func (s *sessions) unspare(session *session) {
	if session.spare[0] == nil {
		return
	}
	session.owner.spare.Remove(session.spare[0])
	s.everyone.spare.Remove(session.spare[1])
	session.spare = [2]*list.Element{}
}
