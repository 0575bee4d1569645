package commandpg

import (
	"testing"
	"time"

	"kennel/infra/api/commandwire"
)

func TestBacklog(t *testing.T) {
	svc, s := service(t)
	backlog := func() (int, time.Duration) {
		open, oldest, err := s.Backlog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return open, oldest
	}
	if open, oldest := backlog(); open != 0 || oldest != 0 {
		t.Errorf("%d open, oldest %v in an empty outbox", open, oldest)
	}
	first, _ := send(t, svc, draft("vic:00e20100", "a")), send(t, svc, draft("vic:00e20100", "b"))
	exec(t, s, `UPDATE command_outbox SET created = created - interval '1 minute' WHERE id = $1`, first.ID)
	if open, oldest := backlog(); open != 2 || oldest < time.Minute || oldest > 2*time.Minute {
		t.Errorf("%d open, oldest %v; want 2, a minute", open, oldest)
	}
	finish(t, svc, first.Thing, first.ID, commandwire.Done)
	if open, oldest := backlog(); open != 1 || oldest > time.Minute {
		t.Errorf("%d open, oldest %v; want the younger one", open, oldest)
	}
}
