// Package liveviewpg keeps the frames of robots that people look at in Postgres: table robot_look (migrations 0086 and 0101).
package liveviewpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/liveview"
	"kennel/infra/api/live"
	"kennel/infra/pg"
	"kennel/infra/thing"
)

// Store implements liveview.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

var _ liveview.Store = (*Store)(nil)

// New returns a Store on the pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool} }

func (s *Store) Ask(ctx context.Context, id thing.ID, every time.Duration) (bool, error) {
	tag, err := s.pool.Exec(ctx, `INSERT INTO robot_look AS l (thing, asked) VALUES ($1, clock_timestamp())
		ON CONFLICT (thing) DO UPDATE SET asked = clock_timestamp() WHERE l.asked < clock_timestamp() - $2::interval`, string(id), every)
	if err != nil {
		return false, fmt.Errorf("announce viewer of %s: %w", id, pg.Err(err))
	}
	return tag.RowsAffected() == 1, nil
}

// plan is the map of a simulated robot's world, and which it is.
type plan struct {
	Rev string    `json:"rev"`
	Map *live.Map `json:"map"`
}

// Put implements liveview.Store. A robot that sends more often than it may is not written more often.
func (s *Store) Put(ctx context.Context, id thing.ID, f live.Frame) error {
	var tree, world []byte
	var err error
	if f.Tree != nil {
		if tree, err = json.Marshal(f.Tree); err != nil {
			return err
		}
		f.Tree = nil
	}
	if w := f.World; w != nil && w.Map != nil {
		if world, err = json.Marshal(plan{w.Rev, w.Map}); err != nil {
			return err
		}
		bare := *w // f.World is the caller's
		bare.Map = nil
		f.World = &bare
	}
	frame, err := f.Encode()
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `UPDATE robot_look SET received = clock_timestamp(), tree = coalesce($2, tree), frame = $3, plan = coalesce($5, plan)
		WHERE thing = $1 AND (received IS NULL OR received < clock_timestamp() - $4::interval)`, string(id), tree, frame, live.Every/5, world)
	if err != nil {
		return fmt.Errorf("frame of %s: %w", id, pg.Err(err))
	}
	return nil
}

func (s *Store) Newest(ctx context.Context, id thing.ID) (f liveview.Frame, err error) {
	var tree, frame, world []byte
	err = s.pool.QueryRow(ctx, `SELECT received, greatest(clock_timestamp() - received, '0'), tree, frame, plan FROM robot_look WHERE thing = $1 AND received IS NOT NULL`,
		string(id)).Scan(&f.At, &f.Age, &tree, &frame, &world)
	if errors.Is(err, pgx.ErrNoRows) {
		return liveview.Frame{}, nil
	}
	if err == nil {
		err = json.Unmarshal(frame, &f.Frame)
	}
	if err == nil && tree != nil {
		err = json.Unmarshal(tree, &f.Tree)
	}
	if w := f.Frame.World; err == nil && world != nil && w != nil {
		var p plan
		if err = json.Unmarshal(world, &p); p.Rev == w.Rev {
			w.Map = p.Map
		}
	}
	if err != nil {
		return liveview.Frame{}, fmt.Errorf("newest frame of %s: %w", id, pg.Err(err))
	}
	return f, nil
}

func (s *Store) Forget(ctx context.Context, keep time.Duration) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM robot_look WHERE asked < clock_timestamp() - $1::interval`, keep); err != nil {
		return fmt.Errorf("forget frames: %w", pg.Err(err))
	}
	return nil
}
