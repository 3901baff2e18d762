package redisreplay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

const (
	errNoMaster = tripseal.PlainError("the cluster has no master")
	errClone    = tripseal.PlainError("the client does not report new connections, for example because WithTimeout returned it: pass the client itself")
)

// attachAll checks the server, or every master of a cluster, for the first time. A node
// that joins the cluster later is checked when it first answers.
func (s *Store) attachAll(ctx context.Context) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		client := s.client.(*redis.Client)
		return s.introduce(ctx, client, client.PoolStats().TotalConns == 0)
	}
	cluster.OnNewNode(func(node *redis.Client) { s.attach(node) })
	var masters atomic.Int32
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		masters.Add(1)
		return s.introduce(ctx, master, false)
	})
	if err == nil && masters.Load() == 0 {
		return errNoMaster
	}
	return err
}

// introduce checks a server for the first time. If unused is true, the client had no
// connection before, so the check opens one. If the store's hook does not see that
// connection, introduce returns an error.
func (s *Store) introduce(ctx context.Context, client *redis.Client, unused bool) error {
	server := s.attach(client)
	l, err := server.look(ctx, 0, time.Now())
	if err != nil {
		return err
	}
	if unused && server.dials.Load() == 0 {
		return errClone
	}
	level, text := slog.LevelInfo, "redisreplay: a restart of this Redis forgets no used token"
	if !l.report.keepsTokens(false) {
		level, text = slog.LevelWarn, "redisreplay: a restart of this Redis may forget used tokens, and users start over: "+
			"to avoid that, run it without replicas, and set appendonly yes and appendfsync always"
	}
	s.logger.LogAttrs(ctx, level, text, slog.String("persistence", l.report.persistence()), slog.Bool("replicas", !l.report.alone))
	return nil
}

// attach returns the server that belongs to a client. For a new client it makes a server,
// and adds the server to the client as a hook.
func (s *Store) attach(client *redis.Client) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.servers[client]; known != nil {
		return known
	}
	added := &server{store: s, client: client}
	s.servers[client] = added
	client.AddHook(added)
	return added
}

// forget removes a closed client from the store.
func (s *Store) forget(client *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.servers, client)
}
