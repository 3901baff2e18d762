package main

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // the SQLite driver, written without C
)

// Order is a row of the table.
type Order struct {
	ID      int64  `json:"id"`
	Placed  int64  `json:"placed" jsonschema:"Unix time in seconds"`
	Status  string `json:"status"`
	Article string `json:"article"`
}

// Key is the sort key of the last row of a page. It includes the id, because two orders can
// be placed in the same second.
type Key struct {
	Placed int64 `json:"p"`
	ID     int64 `json:"i"`
}

// Orders is the table of orders, in SQLite.
type Orders struct{ db *sql.DB }

// OpenOrders opens a database, and creates the table if it does not exist.
func OpenOrders(path string) (*Orders, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // because each connection to :memory: has its own, separate database
	_, err = db.Exec(`
		CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, placed INTEGER NOT NULL, status TEXT NOT NULL, article TEXT NOT NULL);
		CREATE INDEX IF NOT EXISTS orders_by_time ON orders (placed, id);
		CREATE INDEX IF NOT EXISTS orders_by_status ON orders (status, placed, id);`)
	return &Orders{db}, err
}

// Page returns the orders that come after the given key, or the first orders if the key is nil.
// limit is the maximum number of orders on the page. If more orders follow, next is the key of
// the last order on the page; otherwise next is nil. A page starts at a key and not at an offset.
// So every page costs the same, and no row is skipped or repeated when other rows are added or
// deleted.
func (o *Orders) Page(ctx context.Context, status string, after *Key, limit int) (page []Order, next *Key, err error) {
	if after == nil {
		after = &Key{Placed: -1 << 62}
	}
	query, args := `SELECT id, placed, status, article FROM orders WHERE (placed, id) > (?, ?)`, []any{after.Placed, after.ID}
	if status != "" {
		query, args = query+` AND status = ?`, append(args, status)
	}
	rows, err := o.db.QueryContext(ctx, query+` ORDER BY placed, id LIMIT ?`, append(args, limit+1)...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var order Order
		if err := rows.Scan(&order.ID, &order.Placed, &order.Status, &order.Article); err != nil {
			return nil, nil, err
		}
		if len(page) == limit { // the query asked for limit+1 orders, and this one belongs to the next page
			last := page[limit-1]
			return page, &Key{last.Placed, last.ID}, nil
		}
		page = append(page, order)
	}
	return page, nil, rows.Err()
}

// Insert adds an order.
func (o *Orders) Insert(ctx context.Context, placed int64, status, article string) error {
	_, err := o.db.ExecContext(ctx, `INSERT INTO orders (placed, status, article) VALUES (?, ?, ?)`, placed, status, article)
	return err
}

// Fill adds orders until the table has at least n orders.
func (o *Orders) Fill(ctx context.Context, n int) error {
	_, err := o.db.ExecContext(ctx, `
		WITH RECURSIVE n(i) AS (SELECT count(*) FROM orders UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
		INSERT INTO orders (placed, status, article)
		SELECT 1700000000 + (i * 7919) % 1000003, CASE WHEN i % 10 = 0 THEN 'open' ELSE 'sent' END, 'article ' || i FROM n WHERE i < ?`, n, n)
	if err != nil {
		return fmt.Errorf("filling the table: %w", err)
	}
	return nil
}
