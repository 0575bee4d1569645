package registry

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kennel/infra/api/status"
)

// CrashedFor is how long the cloud counts a crash as a problem of its robot, from its receipt: our own default. Migration 0150 has the same number.
const CrashedFor = 6 * time.Hour

// Crashed is the recent crashes of one program of a robot on one release.
type Crashed struct {
	Release string    `json:"release"` // "": not known
	Program string    `json:"program"`
	Count   int       `json:"count"`
	Newest  time.Time `json:"newest"`          // receipt of the latest
	Group   string    `json:"group,omitempty"` // of the latest (package crash)
}

// maxCrashCode bounds a release in a code.
const maxCrashCode = 40

// CrashToken returns the token of the problem that a robot has after a crash on a release: crash/ and the release, lower case, with - for what a code cannot have.
// Migration 0150 makes the same (registry_crash_code).
func CrashToken(release string) string {
	r := []rune(release)
	code := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(string(r[:min(len(r), maxCrashCode)])))
	return status.Problem{Kind: status.KindCrash, Code: code}.Token()
}

// Problem returns the crashes as a problem of their robot.
func (c Crashed) Problem() status.Problem {
	_, code, _ := strings.Cut(CrashToken(c.Release), "/")
	return status.Problem{Kind: status.KindCrash, Code: code, Text: c.words() + ", last at " + stamp(c.Newest)}
}

func (c Crashed) words() string {
	times := "once"
	if c.Count > 1 {
		times = fmt.Sprintf("%d times", c.Count)
	}
	return fmt.Sprintf("%s crashed %s on release %s", cmp.Or(c.Program, "a program"), times, cmp.Or(c.Release, "unknown"))
}

// crashes tells of programs that crashed within CrashedFor: they run again, so that nothing else need be wrong by now.
func (f *facts) crashes() (Check, bool) {
	c := Check{Name: "crashes", Level: OK, Text: fmt.Sprintf("none in the last %d hours", int(CrashedFor.Hours()))}
	if f.thing == nil {
		return c, false
	}
	var found []string
	for _, x := range f.thing.Crashes {
		found = append(found, fmt.Sprintf("%s, last %s ago", x.words(), Ago(f.now.Sub(x.Newest))))
	}
	if len(found) == 0 {
		return c, true
	}
	newest := f.thing.Crashes[0]
	c.Level, c.Text, c.Since, c.Version = Warn, strings.Join(found, "; "), newest.Newest, newest.Release
	c.Do = "See what crashed: kennelctl crashes reports -thing " + string(f.id)
	if newest.Group != "" {
		c.Do = "See what crashed: kennelctl crashes show " + newest.Group
	}
	c.Do += fmt.Sprintf(". If it keeps crashing, install another release. The warning ends %d hours after the last crash", int(CrashedFor.Hours()))
	return c, true
}
