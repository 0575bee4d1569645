package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"kennel/cloud/fleet/motion"
	"kennel/cloud/fleet/motion/motionapi"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/page"
	"kennel/infra/api/motionwire"
	"kennel/infra/auth"
	"kennel/infra/thing"
)

// told keeps the bodies that robots told.
type told struct {
	motion.Store
	bodies map[thing.ID]string
	err    error
}

func (s told) Body(_ context.Context, id thing.ID) (sum, body string, err error) {
	return s.bodies[id], s.bodies[id], s.err // any text that is not empty is a hash here
}

// TestMotionsTab: the page of a robot that told a body with joints has the tab of its motions, and each role of the staff can open it; a viewer is offered neither
// uploads nor plays. Another robot has no such tab.
func TestMotionsTab(t *testing.T) {
	body, err := json.Marshal(motionwire.Body{V: 1, Model: "toy", Ending: "toy"})
	if err != nil {
		t.Fatal(err)
	}
	const dog = thing.ID("aibo:00e20100")
	store := told{bodies: map[thing.ID]string{dog: string(body)}}
	open := func() *http.ServeMux {
		mux := http.NewServeMux()
		robots := &fleet{things: []registry.Thing{nasty(), {ID: dog, Species: dog.Species(), Serial: "00e20100", Presence: registry.Present, Created: noon}}}
		if err := Mount(mux, Config{Fleet: robots, Auth: &door{}, Log: slog.New(slog.DiscardHandler), More: []page.Extra{motionapi.Page(motion.New(motion.Config{Store: store}))}}); err != nil {
			t.Fatal(err)
		}
		return mux
	}
	mux := open()
	link := func(id thing.ID) string { return `href="/things/` + string(id) + `/motions"` }
	for _, tt := range []struct {
		id  thing.ID
		has bool
	}{{dog, true}, {nasty().ID, false}} {
		for _, at := range []string{"", "/motions"} {
			w := do(t, mux, auth.Viewer, "GET", "/things/"+string(tt.id)+at, "")
			if w.Code != http.StatusOK || strings.Contains(w.Body.String(), link(tt.id)) != tt.has {
				t.Errorf("%s%s: %d, want a tab: %v; %s", tt.id, at, w.Code, tt.has, w.Body)
			}
			if part := strings.Contains(w.Body.String(), `id="motions"`); part != (tt.has && at != "") {
				t.Errorf("%s%s: the part of the motions is there: %v", tt.id, at, part)
			}
		}
	}
	for _, role := range auth.Staff {
		w := do(t, mux, role, "GET", "/things/"+string(dog)+"/motions", "")
		if may := strings.Contains(w.Body.String(), "data-upload"); w.Code != http.StatusOK || may != (role != auth.Viewer) {
			t.Errorf("%s: %d, may upload: %v", role, w.Code, may)
		}
	}
	store.err = errors.New("the database is away")
	if w := do(t, open(), auth.Viewer, "GET", "/things/"+string(dog), ""); w.Code < 500 {
		t.Errorf("without the store: %d", w.Code)
	}
}
