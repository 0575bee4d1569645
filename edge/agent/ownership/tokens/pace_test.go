package tokens

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/errs"
)

// The access token is refreshed 3 hours before it ends, again and again; the files follow (peer facts, section 1).
func TestRefreshesThreeHoursBefore(t *testing.T) {
	at(t, func(t *testing.T, h *house, r *robot) {
		time.Sleep(21*time.Hour - time.Minute) // simulated, as every sleep here
		synctest.Wait()
		if n := h.count("refresh"); n != 0 {
			t.Fatalf("%d refreshes before it was due", n)
		}
		for day := range 3 {
			time.Sleep(21 * time.Hour)
			synctest.Wait()
			if n := h.count("refresh"); n != day+1 {
				t.Fatalf("%d refreshes, want %d", n, day+1)
			}
			b, err := r.root.ReadFile(JWTFile)
			h.mu.Lock()
			jwt := h.jwt
			h.mu.Unlock()
			if err != nil || string(b) != jwt {
				t.Errorf("the file is not the newest token: %v", err)
			}
		}
	})
}

// Away clouds are asked after 10 s, 15 s, ... up to 2 minutes; a connection asks at once.
func TestBacksOff(t *testing.T) {
	at(t, func(t *testing.T, h *house, r *robot) {
		h.mu.Lock()
		h.fail = errs.New(errs.Unavailable, "away")
		h.asked, h.at = nil, nil
		h.mu.Unlock()
		time.Sleep(22 * time.Hour)
		synctest.Wait()
		h.mu.Lock()
		times := slices.Clone(h.at)
		h.mu.Unlock()
		if len(times) < 25 {
			t.Fatalf("%d attempts in an hour", len(times))
		}
		want := 10 * time.Second
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); d < want-time.Millisecond || d > want+want/9 {
				t.Fatalf("pause %d is %v, want about %v", i, d, want)
			}
			want = min(want*3/2, 2*time.Minute)
		}
		h.mu.Lock()
		h.fail = nil
		h.mu.Unlock()
		before := h.count("refresh")
		r.Connected()
		synctest.Wait()
		if h.count("refresh") != before+1 {
			t.Error("a connection did not refresh at once")
		}
	})
}

// PermissionDenied elsewhere forces a refresh at once; on the refresh itself it stops, and says what to do (peer facts, section 1).
func TestForced(t *testing.T) {
	at(t, func(t *testing.T, h *house, r *robot) {
		r.Force()
		synctest.Wait()
		if h.count("refresh") != 1 {
			t.Fatalf("asked %q", h.asked)
		}
		// An hour of failures, then it is let be until it is due.
		h.mu.Lock()
		h.fail = errs.New(errs.Unavailable, "away")
		h.mu.Unlock()
		r.Force()
		time.Sleep(65 * time.Minute)
		synctest.Wait()
		n := h.count("refresh")
		if n < 30 || n > 45 {
			t.Errorf("%d attempts in the hour", n)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if h.count("refresh") != n {
			t.Errorf("%d attempts after the hour", h.count("refresh")-n)
		}
		h.mu.Lock()
		h.fail, h.jwt = nil, "ended"
		h.mu.Unlock()
		r.Force()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if h.count("refresh") != n+1 {
			t.Errorf("%d attempts after a refusal", h.count("refresh")-n)
		}
		st := r.State()
		if r.doubts != 1 {
			t.Errorf("the owner is doubted %d times after a refusal, want once", r.doubts)
		}
		if _, ok := r.JWT(); ok || !st.Refused || st.Code != "denied" || !strings.Contains(st.Problem, "logs in with the app again") {
			t.Errorf("state %+v", st)
		}
		h.mu.Lock()
		h.sessions["s2"] = "alice"
		h.mu.Unlock()
		if _, err := r.Exchange(t.Context(), "s2", "b", "SDK"); err != nil || r.State().Refused {
			t.Errorf("after the login: %v, %+v", err, r.State())
		}
	})
}

// The cloud's token names no owner: the robot forgets its own.
func TestEmptyUserInAnswer(t *testing.T) {
	h := newHouse()
	r := wakeUp(t, h, openRoot(t))
	h.sessions["s1"] = "alice"
	if _, err := r.Exchange(t.Context(), "s1", "a", "SDK"); err != nil {
		t.Fatal(err)
	}
	h.owner = ""
	if err := r.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := r.root.Stat(JWTFile)
	if r.User() != "" || err == nil || !slices.Equal(r.users, []string{"", "alice", ""}) {
		t.Errorf("user %q, file %v, heard %q", r.User(), err, r.users)
	}
}

// Strangers make the robot read the document at most once a minute, 3 times in 15 minutes, 6 times an hour (peer facts, section 2); a hint and
// those who are known cost nothing of that.
func TestStrangersArePaced(t *testing.T) {
	at(t, func(t *testing.T, h *house, r *robot) {
		time.Sleep(2 * time.Hour)
		h.mu.Lock()
		h.reads = 0
		h.mu.Unlock()
		stranger := base64.StdEncoding.EncodeToString(make([]byte, 16))
		start := time.Now()
		var at []time.Duration
		for time.Since(start) < 2*time.Hour {
			h.mu.Lock()
			before := h.reads
			h.mu.Unlock()
			if r.Authorized(t.Context(), stranger) {
				t.Fatal("a stranger came in")
			}
			if r.Authorized(t.Context(), "not base64") || r.Authorized(t.Context(), "") {
				t.Fatal("nonsense came in")
			}
			h.mu.Lock()
			if h.reads > before {
				at = append(at, time.Since(start))
			}
			h.mu.Unlock()
			time.Sleep(10 * time.Second)
		}
		for i := range at {
			for _, l := range paceLimits {
				if j := i + l.n; j < len(at) && at[j]-at[i] < l.within {
					t.Errorf("%d readings within %v: %v", l.n+1, at[j]-at[i], at[i:j+1])
				}
			}
		}
		if len(at) != 12 {
			t.Errorf("%d readings in two hours, want 12: %v", len(at), at)
		}
		// Revoked in the cloud, out as soon as the hint is heard.
		known := h.clientToken(r, t)
		h.mu.Lock()
		h.entries = nil
		h.version++
		v := h.version
		h.mu.Unlock()
		if !r.Authorized(t.Context(), known) {
			t.Error("not let in before the hint")
		}
		r.Hint(map[string]uint64{"vic.AppTokens": v})
		synctest.Wait()
		if r.Authorized(t.Context(), known) {
			t.Error("let in after it was revoked")
		}
	})
}

func (h *house) clientToken(r *robot, t *testing.T) string {
	t.Helper()
	h.mu.Lock()
	h.sessions["later"] = "alice"
	h.mu.Unlock()
	c, err := r.Exchange(t.Context(), "later", "later", "SDK")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c.Reveal()
}
