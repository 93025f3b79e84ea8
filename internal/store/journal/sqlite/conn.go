package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"github.com/leat-dev/leat/internal/store/journal"
)

// conn is one connection with its prepared statements. It uses the driver directly, because the pool, the reflection and the locks
// of database/sql cost more than the statements. Only one goroutine may use it at a time.
type conn struct {
	raw driver.Conn
	// Statements stay prepared for the life of the connection, by their text.
	stmts map[string]*stmt
	args  []driver.NamedValue
}

// stmt is a prepared statement with the driver's interfaces, so that they aren't asserted on every use.
type stmt struct {
	driver.Stmt
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
}

// dial opens a file and runs the pragmas on the connection. The connection isn't pooled; its owner must close it.
func dial(path string, pragmas ...string) (*conn, error) { return dialWith(path, "", pragmas...) }

// dialWith is dial with additional parameters of the file's URI. Double-quoted strings are disabled, because SQLite would read
// a misspelled column as text.
func dialWith(path, query string, pragmas ...string) (*conn, error) {
	uri, err := fileURI(path, strings.TrimPrefix(query+"&_error_rc=1&_dqs=0", "&"))
	if err != nil {
		return nil, err
	}
	raw, err := (&sqlite.Driver{}).Open(uri)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c := &conn{raw: raw, stmts: map[string]*stmt{}}
	for _, p := range pragmas {
		if err := c.exec("PRAGMA " + p); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: pragma %s: %w", path, p, err), c.close())
		}
	}
	return c, nil
}

// fileURI returns the SQLite URI of a path, with its special characters escaped.
func fileURI(path, query string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: query}
	return u.String(), nil
}

// close closes the statements and then the connection.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.raw.Close())...)
}

// prepare returns the prepared statement for a query. Queries are constants, so the map of statements stays small.
func (c *conn) prepare(query string) (*stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	d, err := c.raw.Prepare(query)
	if err != nil {
		return nil, err
	}
	e, ok1 := d.(driver.StmtExecContext)
	q, ok2 := d.(driver.StmtQueryContext)
	if !ok1 || !ok2 {
		return nil, errors.New("the sqlite driver has changed: its statements take no context")
	}
	s := &stmt{d, e, q}
	c.stmts[query] = s
	return s, nil
}

// bind fills the connection's argument slice, which the next call reuses. Values are int, int64, string, []byte or nil. SQLite
// stores an empty []byte as NULL, but sealed text is never empty. Reusing the slice saves an allocation for every statement.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement that returns no rows.
func (c *conn) exec(query string, args ...any) error {
	_, err := c.change(context.Background(), query, args...)
	return err
}

// change runs a statement and returns the number of changed rows. If ctx ends, the statement is interrupted. The writer passes
// a context that never ends; only maintenance on other connections is interrupted.
func (c *conn) change(ctx context.Context, query string, args ...any) (int64, error) {
	r, err := c.run(ctx, query, args)
	if err != nil || r == nil { // r is nil if the statement is only a comment
		return 0, err
	}
	return r.RowsAffected()
}

// run prepares and runs a statement that returns no rows.
func (c *conn) run(ctx context.Context, query string, args []any) (driver.Result, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.exec.ExecContext(ctx, c.bind(args))
}

// insert runs an INSERT and returns the row number.
func (c *conn) insert(query string, args ...any) (int64, error) {
	r, err := c.run(context.Background(), query, args)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// row is one row of a result. The slice is reused for the next row; the values are not. The accessors return a zero value for a
// column of another type, which STRICT tables exclude.
type row []driver.Value

// int returns an INTEGER column, or 0 for NULL.
func (r row) int(i int) int64 { n, _ := r[i].(int64); return n }

// text returns a TEXT column.
func (r row) text(i int) string { s, _ := r[i].(string); return s }

// blob returns a BLOB column. The driver returns nil for an empty one.
func (r row) blob(i int) []byte { b, _ := r[i].([]byte); return b }

// forEach runs a query and calls f for each row, until f returns an error. f must not use the connection for another query with
// the same text.
func (c *conn) forEach(query string, f func(row) error, args ...any) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.query.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	r := make(row, len(rows.Columns()))
	for {
		if err := rows.Next(r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
}

// queryRow runs a query and returns its first row, or nil.
func (c *conn) queryRow(query string, args ...any) (row, error) {
	var result row
	err := c.forEach(query, func(r row) error {
		if result == nil {
			// A copy, because forEach reuses its row.
			result = append(row(nil), r...)
		}
		return nil
	}, args...)
	return result, err
}

// number runs a query that returns one number.
func (c *conn) number(query string, args ...any) (int64, error) {
	r, err := c.queryRow(query, args...)
	if err != nil || r == nil {
		return 0, err
	}
	return r.int(0), nil
}

// snapshot runs f in a read transaction. The state is fixed at the first statement of f, not at BEGIN.
func (c *conn) snapshot(f func() error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, c.exec("ROLLBACK"))
}

// code returns SQLite's extended result code of an error, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// pool lends the readers' connections. If all of them are lent, readers wait. A nil connection means that the file couldn't be
// opened.
type pool struct{ conns chan *conn }

// refill puts connections into the pool. Nil connections make readers fail with errUnavailable instead of waiting.
func (p *pool) refill(conns []*conn) {
	for _, c := range conns {
		p.conns <- c
	}
}

// drain closes all connections, each after its current read. It waits for the current reads, so f in readTx must not call the
// writer.
func (p *pool) drain() error {
	var errs []error
	for range readerCount {
		if c := <-p.conns; c != nil {
			errs = append(errs, c.close())
		}
	}
	return errors.Join(errs...)
}

// errUnavailable is returned to readers while the file can't be reopened.
var errUnavailable = errors.New("journal: the file couldn't be reopened after a failed commit")

// readTx runs f in one read transaction, so that f sees one state of the file. f must be short and must not block. A long
// transaction would keep the write-ahead log from being restarted.
func (j *Journal) readTx(ctx context.Context, f func(*conn) error) error {
	// select chooses at random among ready cases, so the reasons to refuse are checked first.
	if j.ctx.Err() != nil {
		return journal.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c := <-j.readers.conns:
		// A nil connection is returned as well, because drain waits for readerCount of them.
		defer func() { j.readers.conns <- c }()
		if c == nil {
			return errUnavailable
		}
		return c.snapshot(func() error { return f(c) })
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ctx.Done():
		return journal.ErrClosed
	}
}
