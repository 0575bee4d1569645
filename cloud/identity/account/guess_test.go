package account

import (
	"strings"
	"testing"
	"time"

	"kennel/infra/logging"
)

// FuzzDevice: whatever a browser shows, it is known to the accounts alone that signed in there.
func FuzzDevice(f *testing.F) {
	s := &SignIn{cfg: SignInConfig{Secret: []byte("ours"), Now: time.Now}}
	thief := &SignIn{cfg: SignInConfig{Secret: []byte("theirs"), Now: time.Now}}
	f.Add("")
	f.Add("....")
	f.Add(string(thief.device("ada", "")))
	f.Add(string(thief.device("ada", thief.device("bob", ""))) + "." + strings.Repeat("A", 75))
	f.Fuzz(func(t *testing.T, shown string) {
		if _, ok := s.knows("ada", logging.Secret(shown)); ok {
			t.Fatalf("%q is known", shown)
		}
		d := s.device("ada", logging.Secret(shown))
		if _, ok := s.knows("ada", d); !ok || len(d) > 4*76 || strings.Count(string(d), ".") >= deviceEntries {
			t.Fatalf("%q becomes %q", shown, d.Reveal())
		}
		if _, ok := s.knows("bob", d); ok {
			t.Fatalf("%q is another account's too", d.Reveal())
		}
		if again := s.device("ada", d); again != d {
			t.Fatalf("%q becomes %q at the next sign-in", d.Reveal(), again.Reveal())
		}
	})
}
