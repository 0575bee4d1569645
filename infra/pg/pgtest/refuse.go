package pgtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DiskFull is the SQLSTATE with which Postgres refuses a statement that finds no space to write.
const DiskFull = "53100"

// Database runs statements: a pool or a connection.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Tables returns the names of the tables of the database at the other end of db, without their partitions.
func Tables(t testing.TB, db Database) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) == 0 {
		t.Fatalf("%d tables, %v", len(all), err)
	}
	return all
}

// Refuse makes a database answer each statement that writes to one of the tables with an error of this SQLSTATE, such as DiskFull; reading still works.
// Without tables it is all of them. A later call changes the SQLSTATE of all tables that are closed. The returned function opens its tables again. Unlike a
// real full disk, the log of Postgres still has room.
func Refuse(t testing.TB, db Database, code string, tables ...string) (end func()) {
	t.Helper()
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if len(tables) == 0 {
		tables = slices.DeleteFunc(Tables(t, db), func(name string) bool { return name == "goose_db_version" })
	}
	exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION test_refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '%s', MESSAGE = 'refused by a test'; END $$`, code))
	for _, table := range tables { // each by itself: together they would wait for a writer who waits for them
		exec(`CREATE OR REPLACE TRIGGER aaa_refused BEFORE INSERT OR UPDATE OR DELETE ON ` + table + ` FOR EACH STATEMENT EXECUTE FUNCTION test_refused()`)
	}
	return func() {
		t.Helper()
		for _, table := range tables {
			exec(`DROP TRIGGER aaa_refused ON ` + table)
		}
	}
}
