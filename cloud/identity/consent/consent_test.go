package consent

import (
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// TestCheck: what surely began under another owner is refused for good, what may have begun then comes again (ADR 0036).
func TestCheck(t *testing.T) {
	const rex thing.ID = "vic:00e20100"
	asked := time.Now()
	h := Hold{Asked: asked, Took: 300 * time.Millisecond}
	for _, c := range []struct {
		what           string
		owned, settled time.Duration
		allowed        bool
		begun          time.Duration // before the answer
		code           string
	}{
		{"begun after all changes", 2 * time.Second, 2 * time.Second, true, time.Second, ""},
		{"begun after all changes, and not allowed", 2 * time.Second, 2 * time.Second, false, time.Second, CodeOptedOut},
		{"begun before the owner came", 500 * time.Millisecond, 500 * time.Millisecond, true, time.Second, CodeOwnerChanged},
		{"begun before the owner came, as the clocks are compared", 800 * time.Millisecond, 800 * time.Millisecond, false, time.Second, "retry_after"},
		{"begun before the settings changed", 2 * time.Second, 500 * time.Millisecond, true, time.Second, "retry_after"},
		{"begun before the settings changed, as the clocks are compared", 2 * time.Second, 800 * time.Millisecond, true, time.Second, "retry_after"},
		{"begun before the owner said no", 2 * time.Second, 500 * time.Millisecond, false, time.Second, CodeOptedOut},
		{"the database's clock was put back", -time.Second, 2 * time.Second, true, time.Second, "retry_after"},
	} {
		h.Permits = map[thing.ID]Permit{rex: {Account: "ann", Allowed: c.allowed, Owned: c.owned, Settled: c.settled}}
		account, err := h.Check(rex, asked.Add(-c.begun))
		if errs.CodeOf(err) != c.code || (account == "ann") != (c.code == "") {
			t.Errorf("%s: %q, %v; want code %q", c.what, account, err, c.code)
		}
	}
	if _, err := h.Check("vic:00e20101", asked); errs.CodeOf(err) != "retry_after" {
		t.Errorf("a robot that is being changed: %v", err)
	}
}
