package demo

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/pg"
)

// clock is the time of the seeding. The stores go by the database's clock, so pool's connections have one that can be set: their search path finds functions of ours
// before those of Postgres. Defaults of columns were bound to the real clock when the tables were made; they go by ours until close.
type clock struct {
	base *pgxpool.Pool
	pool *pgxpool.Pool // its connections live at the set time
	at   atomic.Pointer[time.Time]
	undo []string // statements that give columns their defaults back
}

const makeClock = `CREATE SCHEMA kennel_demo;
CREATE FUNCTION kennel_demo.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
	$$ SELECT coalesce(nullif(pg_catalog.current_setting('kennel_demo.at', true), '')::timestamptz, pg_catalog.clock_timestamp()) $$;
CREATE FUNCTION kennel_demo.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT kennel_demo.clock_timestamp() $$;`

// newClock puts the clock into the database; close takes it out again.
func newClock(ctx context.Context, base *pgxpool.Pool) (*clock, error) {
	c := &clock{base: base}
	err := pg.Tx(ctx, base, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, makeClock); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ', c.oid::regclass, a.attname), pg_get_expr(d.adbin, d.adrelid)
			FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum JOIN pg_class c ON c.oid = d.adrelid
			WHERE c.relnamespace = 'public'::regnamespace AND pg_get_expr(d.adbin, d.adrelid) IN ('clock_timestamp()', 'now()')`)
		if err != nil {
			return err
		}
		var change, was string
		var all []string
		if _, err := pgx.ForEachRow(rows, []any{&change, &was}, func() error {
			all, c.undo = append(all, change+"kennel_demo.clock_timestamp()"), append(c.undo, change+was)
			return nil
		}); err != nil {
			return err
		}
		return each(ctx, tx, all)
	})
	if err != nil {
		return nil, fmt.Errorf("make the clock of the demo: %w", err)
	}
	conf := base.Config()
	conf.ConnConfig.RuntimeParams["search_path"] = "public, kennel_demo, pg_catalog"
	conf.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		_, err := conn.Exec(ctx, `SELECT set_config('kennel_demo.at', $1, false)`, c.now().Format(time.RFC3339Nano))
		return err == nil, err
	}
	if c.pool, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, fmt.Errorf("make the clock of the demo: %w", err)
	}
	return c, nil
}

// set sets the time for everything that begins afterwards.
func (c *clock) set(t time.Time) { c.at.Store(&t) }

// now returns the time that was set.
func (c *clock) now() time.Time { return *c.at.Load() }

func (c *clock) close(ctx context.Context) error {
	c.pool.Close()
	err := pg.Tx(ctx, c.base, func(tx pgx.Tx) error { return each(ctx, tx, append(c.undo, `DROP SCHEMA kennel_demo CASCADE`)) })
	if err != nil {
		return fmt.Errorf("remove the clock of the demo: %w", err)
	}
	return nil
}

func each(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
