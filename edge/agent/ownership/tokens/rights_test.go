package tokens

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/tokenwire"
)

// TestRightsAndEnd: a client has the rights of its entry until it expires, after a restart without the cloud too. An app of the original's, without
// either, has all but to hear for ever (VEC-AUTH-06). What is not a right, and an end that cannot be read, give nothing.
func TestRightsAndEnd(t *testing.T) {
	root := openRoot(t)
	synctest.Test(t, func(t *testing.T) {
		h := newHouse()
		clients := map[string]string{}
		for _, c := range []struct {
			name   string
			rights []string
			end    string
		}{
			{"app", nil, ""}, {"none", []string{}, ""}, {"some", []string{"look", "move"}, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
			{"listener", []string{"hear"}, ""}, {"odd", []string{"fly", "Look", ""}, ""}, {"over", nil, "1999-01-01T00:00:00Z"}, {"torn", nil, "soon"},
		} {
			clients[c.name] = h.client(c.name, "SDK")
			h.entries[len(h.entries)-1].Rights, h.entries[len(h.entries)-1].ExpiresAt = c.rights, c.end
		}
		r := wakeUp(t, h, root)
		if _, ok := r.Client(t.Context(), clients["app"]); !ok { // reads the document
			t.Fatal("an app is not let in")
		}
		for range 2 {
			h.reads = 0
			for name, want := range map[string]string{"app": "look talk move camera settings", "none": "", "some": "look move", "listener": "hear", "odd": ""} {
				c, ok := r.Client(t.Context(), clients[name])
				if !ok || c.ClientName != name {
					t.Errorf("%s: %+v, %v", name, c, ok)
				}
				var may []string
				for _, right := range slices.Concat(tokenwire.Rights, []string{"fly", "Look", ""}) {
					if c.May(right) {
						may = append(may, right)
					}
				}
				if got := strings.Join(may, " "); got != want {
					t.Errorf("%s may %q, want %q", name, got, want)
				}
			}
			for _, name := range []string{"over", "torn"} {
				if c, ok := r.Client(t.Context(), clients[name]); ok || c.ClientName != "" || r.Authorized(t.Context(), clients[name]) {
					t.Errorf("%s is let in: %+v", name, c)
				}
			}
			if h.reads != 0 {
				t.Errorf("the document was read %d times for clients that the robot knows", h.reads)
			}
			r = wakeUp(t, h, root)
		}
		time.Sleep(time.Hour - time.Second)
		if !r.Authorized(t.Context(), clients["some"]) {
			t.Error("not let in a second before the end")
		}
		time.Sleep(time.Second)
		if r.Authorized(t.Context(), clients["some"]) {
			t.Error("let in at the end")
		}
	})
}
