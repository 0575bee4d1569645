package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kennel/infra/api/poke"
)

// palm is the hand of a person beside a robot.
type palm struct {
	mu   sync.Mutex
	real bool
	did  []string
}

func (h *palm) Present() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.real
}

func (h *palm) Poke(_ context.Context, p poke.Poke) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Verb == poke.Dip {
		return errors.New("it has no supply")
	}
	h.did = append(h.did, p.Verb+" "+p.Side)
	return nil
}

// TestHand: the hand of the robot's own page needs a token with the right to move, knows the words of robotsim poke without files, and touches simulated
// robots alone. It is written down like every other use.
func TestHand(t *testing.T) {
	d := newDesk(t)
	do := func(method, token, words string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, "https://"+d.addr+"/hand", strings.NewReader(words))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: d.conf, DisableKeepAlives: true}}
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(text)
	}
	for _, tc := range []struct {
		method, token, words string
		status               int
		says                 string
	}{
		{"GET", "nobody", "", http.StatusUnauthorized, "token_wrong"},
		{"GET", "look", "", http.StatusOK, `"simulated":true`},
		{"POST", "nobody", "pat chin", http.StatusUnauthorized, "token_wrong"},
		{"POST", "look", "pat chin", http.StatusForbidden, "right_missing"},
		{"POST", "all", "pat chin", http.StatusOK, "{}"},
		{"POST", "all", "pat wing", http.StatusBadRequest, "wing"},
		{"POST", "all", "play a.wav", http.StatusBadRequest, "spoken to"},
		{"POST", "all", strings.Repeat("pat ", 1000), http.StatusBadRequest, "64"},
		{"POST", "all", "dip", http.StatusConflict, "not_possible"},
	} {
		if code, text := do(tc.method, tc.token, tc.words); code != tc.status || !strings.Contains(text, tc.says) {
			t.Errorf("%s %s %.20s: %d %s, want %d with %s", tc.method, tc.token, tc.words, code, text, tc.status, tc.says)
		}
	}
	d.hand.mu.Lock()
	d.hand.real = true
	d.hand.mu.Unlock()
	if code, text := do("POST", "all", "pat chin"); code != http.StatusConflict || !strings.Contains(text, "not_simulated") {
		t.Errorf("a real robot: %d %s", code, text)
	}
	if want := []string{"pat chin"}; !slices.Equal(d.hand.did, want) {
		t.Errorf("the hand did %q, want %q", d.hand.did, want)
	}
	var used []string
	for _, u := range d.status().Uses {
		if u.Call == "hand" {
			used = append(used, u.What+" "+u.Outcome)
		}
	}
	slices.Sort(used)
	if want := []string{" right_missing", "dip not_possible", "pat chin -for 300ms done"}; !slices.Equal(used, want) {
		t.Errorf("uses %q, want %q", used, want)
	}
}
