package proxycmd

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections limits how many connections a server has. At the limit, a new connection takes the place of the one that
// has been idle for longest. So whoever only holds connections cannot lock others out. If none is idle, the new one
// waits, and the server accepts no further ones meanwhile.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]time.Time // since when a connection may be closed for another; zero while it serves a request
	changed chan struct{}          // closed, and made anew, when there may be room
}

// newness is how long a new connection may take to send the headers of its first request before it counts as idle.
const newness = time.Second

func newConnections(most int) *connections {
	return &connections{most: most, open: make(map[net.Conn]time.Time), changed: make(chan struct{})}
}

// track is for the field ConnState of [http.Server].
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.open[conn] // not if it was closed for another one
	switch {
	case state == http.StateNew:
		c.makeRoom()
		c.open[conn] = time.Now().Add(newness)
	case state == http.StateIdle && known:
		c.open[conn] = time.Now()
		c.tell()
	case state == http.StateActive && known:
		c.open[conn] = time.Time{}
	case known && state != http.StateIdle && state != http.StateActive:
		delete(c.open, conn)
		c.tell()
	}
}

// tell wakes a connection that waits for room.
func (c *connections) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// makeRoom waits until there is room for one more connection.
func (c *connections) makeRoom() {
	for len(c.open) >= c.most && !c.closeIdle() {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(newness / 4): // a new connection may have become idle
		}
		c.mu.Lock()
	}
}

// closeIdle closes the connection that has been idle for longest. It returns false if none is idle.
func (c *connections) closeIdle() bool {
	var longest net.Conn
	now := time.Now()
	for conn, since := range c.open {
		if !since.IsZero() && since.Before(now) && (longest == nil || since.Before(c.open[longest])) {
			longest = conn
		}
	}
	if longest == nil {
		return false
	}
	delete(c.open, longest)
	if secure, ok := longest.(*tls.Conn); ok {
		longest = secure.NetConn() // to close a tls.Conn may take seconds
	}
	longest.Close()
	return true
}
