package lives

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cmd/e2e/housetest"
	"kennel/edge/sim"
	"kennel/edge/update/slot"
	"kennel/infra/freeaddr"
	"kennel/infra/thing"
	"kennel/ota/archive"
	"kennel/ota/manifest"
)

// cutter is the way to the object store. Every twentieth connection breaks after some bytes of its answer.
type cutter struct {
	addr        string
	conns, cuts atomic.Int64
	sent        atomic.Int64 // bytes of answers
}

func newCutter(t *testing.T, target string, most int) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", freeaddr.For(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{addr: l.Addr().String()}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(near, target, most)
		}
	}()
	return c
}

func (c *cutter) carry(near net.Conn, target string, most int) {
	defer near.Close()
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(far, near) // the end of either side ends both
		far.Close()
	}()
	var answer io.Reader = far
	if c.conns.Add(1)%20 == 0 {
		c.cuts.Add(1)
		answer = io.LimitReader(far, 1+rand.Int64N(int64(most)))
	}
	n, _ := io.Copy(near, answer) // as above
	c.sent.Add(n)
}

// makeRelease packs a release of simulated robots with a system image of size bytes, signed with the installation's key.
func makeRelease(h *housetest.House, sys sim.System, size int, edit ...func(*manifest.Manifest)) string {
	h.T.Helper()
	text, err := os.ReadFile(h.Ready.Files["release_key"])
	if err != nil {
		h.T.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		h.T.Fatal("the release key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		h.T.Fatal(err)
	}
	file := filepath.Join(h.T.TempDir(), string(sys.Version)+".ota")
	f, err := os.Create(file)
	if err != nil {
		h.T.Fatal(err)
	}
	noise := make([]byte, size) // does not compress: each byte of it crosses the wire
	rng := rand.NewChaCha8([32]byte{7})
	_, _ = rng.Read(noise) // never fails
	images := map[manifest.Part]io.Reader{manifest.Boot: bytes.NewReader([]byte("kernel of " + sys.Version)),
		manifest.System: bytes.NewReader(append(sys.Image(1<<10), noise...))}
	m := &manifest.Manifest{Version: sys.Version, Reboot: true}
	for _, e := range edit {
		e(m)
	}
	if err := archive.Write(f, m, images, archive.WriteOptions{Key: key.(crypto.Signer)}); err != nil {
		h.T.Fatal(err)
	}
	if err := f.Close(); err != nil {
		h.T.Fatal(err)
	}
	return file
}

// TestUpdates is issue 17, "what must hold" 5: a fleet downloads a release at once from S3 while connections break at random, each robot continues where
// it was, boots the new system and says so; nearly nothing crosses the wire twice. A rollout hands the release out, and the robots check its metadata (line 4).
func TestUpdates(t *testing.T) {
	n, size, limit := 40, 1<<20, 3*time.Minute
	if housetest.Soak() {
		n, size, limit = 500, 2<<20, 15*time.Minute
	}
	store := freeaddr.For(t)
	way := newCutter(t, store, size)
	h := housetest.New(t, "-robots", "0", "-log-level", "warn", "-listen", "s3="+store, "-objects-url", "http://"+way.addr)
	h.Start()
	db := h.DB(t)
	file := makeRelease(h, sim.System{Version: "2.0.0.9000"}, size)
	whole, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	f := h.StartFleet(t, housetest.FleetRoot(t), n, housetest.FleetProfile(t, housetest.SteadyFleet), "-release-key", h.Ready.Files["release_pub"], "-release-root", h.Ready.Files["release_root"])
	f.Await(limit, "all connected", func(s housetest.FleetStatus) bool { return s.Connected == n && s.Enrolled == n })
	if out, err := h.Ctl("releases", "upload", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := time.Now()
	if out, err := h.Ctl("rollout", "create", "vic", "2.0.0.9000", "-channel", "dev", "-phases", "100%:1s", "-guards", "none", "-cap", fmt.Sprint(n)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	housetest.Await(t, limit, "all run the new release", func() error {
		got := housetest.QueryNumber(t, db, `select count(*) from registry_facet where os = '2.0.0.9000'`)
		if got != int64(n) {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	ideal := float64(n) * float64(whole.Size())
	share := float64(way.sent.Load()) / ideal
	t.Logf("%d robots updated in %v; %d connections, %d cut; %.3f times the ideal crossed the wire", n, time.Since(start).Round(time.Second),
		way.conns.Load(), way.cuts.Load(), share)
	if way.cuts.Load() == 0 {
		t.Error("no connection was cut")
	}
	if share > 1.1 {
		t.Errorf("%.3f times the ideal crossed the wire, want at most 1.1", share)
	}
	f.Await(limit, "all are back", func(s housetest.FleetStatus) bool { return s.Connected == n })
	unvouched(h, db, limit)
	s := f.Stop()
	if s.Reboots < int64(n) {
		t.Errorf("%d reboots of %d robots", s.Reboots, n)
	}
}

// unvouched is issue 17, "what must hold" 4, with a real agent: who can write the cloud's database names an archive to a robot, but cannot sign for it. The robot
// says with which code and why it refuses, and installs the release once the metadata are right again.
func unvouched(h *housetest.House, db *pgx.Conn, limit time.Duration) {
	t := h.T
	t.Helper()
	var plain int64
	if plain = housetest.QueryNumber(t, db, `select count(*) from ota_status where reason like 'installed on the signature%'`); plain != 0 {
		t.Errorf("%d robots installed without metadata", plain)
	}
	var roles []struct {
		Role    string
		Problem string
		Here    bool `json:"signed_here"`
	}
	if err := h.CtlJSON(&roles, "releases", "trust", "show"); err != nil || len(roles) != 7 {
		t.Errorf("metadata %+v, %v", roles, err)
	}
	for _, r := range roles {
		if r.Problem != "" || r.Here != (r.Role != "root") {
			t.Errorf("metadata %+v", r)
		}
	}
	if out, err := h.Ctl("releases", "upload", makeRelease(h, sim.System{Version: "2.0.0.9001"}, 1<<10)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const forged = `update vouch_metadata set body = convert_to(replace(convert_from(body, 'utf8'), '"expires":"2', '"expires":"3'), 'utf8')
		where role = 'prod' and version = (select max(version) from vouch_metadata where role = 'prod')`
	if _, err := db.Exec(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	const robot = "vic:00f00000"
	if out, err := h.Ctl("releases", "want", robot, "2.0.0.9001"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	housetest.Await(t, limit, "the robot refuses and says why", func() error {
		var s struct {
			Last struct {
				Phase, Reason string
				Code          int
			}
		}
		if err := h.CtlJSON(&s, "releases", "show", robot); err != nil {
			return err
		}
		if s.Last.Phase != "failed" || s.Last.Code != 209 || !strings.Contains(s.Last.Reason, "release metadata, role prod: length/hash verification error") {
			return fmt.Errorf("%+v", s.Last)
		}
		return nil
	})
	if _, err := db.Exec(t.Context(), strings.NewReplacer(`"2'`, `"3'`, `"3'`, `"2'`).Replace(forged)); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"-none", "2.0.0.9001"} { // another wish is tried at once
		if out, err := h.Ctl("releases", "want", robot, version); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	housetest.Await(t, limit, "the robot runs it", func() error {
		if got := housetest.QueryNumber(t, db, `select count(*) from registry_facet where os = '2.0.0.9001'`); got != 1 {
			return fmt.Errorf("%d robots", got)
		}
		return nil
	})
}

// Robots that are present carry out a wish for their species, and kenneld comes through its round of hints, also when the wish is taken back.
func TestWishForSpecies(t *testing.T) {
	const n, version, limit = 8, "2.0.0.9002", 3 * time.Minute
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	db := h.DB(t)
	f := h.StartFleet(t, housetest.FleetRoot(t), n, housetest.FleetProfile(t, housetest.SteadyFleet), "-release-key", h.Ready.Files["release_pub"])
	f.Await(limit, "all connected", func(s housetest.FleetStatus) bool { return s.Connected == n && s.Enrolled == n })
	if out, err := h.Ctl("releases", "upload", makeRelease(h, sim.System{Version: version}, 1<<10)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := h.Ctl("releases", "want", "vic", version); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	housetest.Await(t, limit, "each robot runs it", func() error {
		if got := housetest.QueryNumber(t, db, `select count(*) from registry_facet where os = '`+version+`'`); got != n {
			return fmt.Errorf("%d robots", got)
		}
		return nil
	})
	if out, err := h.Ctl("releases", "want", "vic", "-none"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	housetest.Await(t, limit, "the round of hints is over", func() error {
		if got := housetest.QueryNumber(t, db, `select count(*) from ota_round`); got != 0 {
			return fmt.Errorf("%d rounds", got)
		}
		return nil
	})
	f.Stop()
}

// TestBadRelease (issue 27, "what must hold" 3; issue 17, 7), with real agents: a release whose programs end right after each start on some robots. Half of
// the robots of each phase boot it, the others wait for their reboot. The rollout stops, or is held and a person ends it, in the phase where two robots fell
// back; those that waited never boot it, the others go back; and everything that tells people says why.
func TestBadRelease(t *testing.T) {
	if !housetest.Soak() {
		badRelease(t, 60, 60)
		return
	}
	for _, dies := range []float64{5, 20, 60} {
		t.Run(fmt.Sprintf("%.0f of 100", dies), func(t *testing.T) { badRelease(t, 200, dies) })
	}
}

func badRelease(t *testing.T, n int, dies float64) {
	const older, bad, limit = "2.0.0.6074", "2.0.0.9100", 5 * time.Minute
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	db := h.DB(t)
	sys := sim.System{Version: bad, Dies: dies}
	folder := housetest.FleetRoot(t)
	f := h.StartFleet(t, folder, n, housetest.FleetProfile(t, housetest.SteadyFleet), "-release-key", h.Ready.Files["release_pub"])
	present := func(s housetest.FleetStatus) bool { return s.Connected == n && s.Enrolled == n }
	f.Await(limit, "all connected", present)
	if out, err := h.Ctl("releases", "upload", makeRelease(h, sys, 1<<16, func(m *manifest.Manifest) { m.Reboot = false })); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := h.Ctl("alerts", "mail", "set", "ops@staff.example"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var r struct {
		ID       string `json:"rollout"`
		State    string
		Phase    int
		Why      string
		Hold     string
		Evidence struct {
			Code   string
			Robots []string
		}
		Progress struct {
			Phases []struct{ Robots, Waits int }
		}
	}
	if err := h.CtlJSON(&r, "rollout", "create", "vic", bad, "-channel", "dev", "-phases", "30%:5s,60%:5s,100%:5s", "-watch", "10s", "-rollback",
		"-guards", fmt.Sprintf("failures:5%%:%d", n/10), "-cap", fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	id := r.ID
	show := func() {
		t.Helper()
		if err := h.CtlJSON(&r, "rollout", "show", id); err != nil {
			t.Fatal(err)
		}
	}
	things := func(where string) []string {
		t.Helper()
		rows, err := db.Query(t.Context(), "select thing from rollout_member where rollout = $1 and "+where+" order by thing", id)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	const installed = "state = 'updating' and phase = 'installed'"
	reboot := func(list []string) {
		t.Helper()
		var done struct{ Rebooted int }
		if err := f.Ask(t.Context(), "POST", "/reboot?"+url.Values{"thing": list}.Encode(), &done); err != nil || done.Rebooted != len(list) {
			t.Fatalf("%d robots rebooted, want %d: %v", done.Rebooted, len(list), err)
		}
	}
	harmed := func() bool { show(); return r.State == "stopped" || r.State == "held" && r.Hold != "phase" }
	booted, waits := map[string]bool{}, map[string]bool{}
	for phase := 0; !harmed(); phase++ { // all install, half of them boot
		housetest.Await(t, limit, fmt.Sprintf("the robots of phase %d wait for their reboot", phase+1), func() error {
			show()
			all := 0
			for _, p := range r.Progress.Phases[:min(phase+1, len(r.Progress.Phases))] {
				all += p.Robots
			}
			if got := len(things(installed)) + len(booted); r.Phase != phase || all == 0 || got < all {
				return fmt.Errorf("%d of %d in phase %d, %s", got, all, r.Phase+1, r.State)
			}
			return nil
		})
		for half := range 2 {
			list := things(installed)
			for _, id := range list {
				waits[id] = true
			}
			if half == 0 {
				list = list[:len(list)/2]
			}
			before := len(booted)
			for _, id := range list {
				booted[id] = true
				delete(waits, id)
			}
			reboot(list)
			housetest.Await(t, limit, "they have said what they run", func() error {
				if got := len(things("state in ('done', 'fell_back')")); got < before+len(list) && !harmed() {
					return fmt.Errorf("%d of %d", got, before+len(list))
				}
				return nil
			})
			if len(things("state = 'fell_back'")) >= 2 || harmed() {
				break
			}
		}
		if len(things("state = 'fell_back'")) >= 2 {
			housetest.Await(t, limit, "the rollout stops or asks", func() error {
				if !harmed() {
					return fmt.Errorf("it is %s in phase %d", r.State, r.Phase+1)
				}
				return nil
			})
			break
		}
		housetest.Await(t, limit, "the end of the phase", func() error {
			if show(); r.State != "held" {
				return fmt.Errorf("it is %s in phase %d", r.State, r.Phase+1)
			}
			return nil
		})
		if out, err := h.Ctl("rollout", "release", id); err != nil { // too few robots to show that it is well
			t.Fatalf("%v\n%s", err, out)
		}
	}
	show()
	t.Logf("%s in phase %d: %s", r.State, r.Phase+1, r.Why)
	if c := r.Evidence.Code; c != "fell_back" && c != "evidence" || len(r.Evidence.Robots) == 0 {
		t.Errorf("%+v: want evidence, by the robots that fell back", r)
	}
	waiting := slices.Sorted(maps.Keys(waits))
	toldOf(t, h, id, bad, r.Why, r.Evidence.Robots[0])
	if r.State == "held" {
		if out, err := h.Ctl("rollout", "rollback", id, "-why", "robots fall back"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	housetest.Await(t, limit, "every robot has returned or fallen back", func() error {
		if open := things("state not in ('', 'returned', 'fell_back', 'control')"); len(open) > 0 {
			return fmt.Errorf("%d robots, such as %s", len(open), open[0])
		}
		return nil
	})
	t.Logf("%d robots booted it, %d waited for their reboot", len(booted), len(waiting))
	reboot(waiting)
	housetest.Await(t, limit, "every robot runs the old release", func() error {
		if got := housetest.QueryNumber(t, db, `select count(*) from registry_facet where os = '`+older+`' and present`); got != int64(n) {
			return fmt.Errorf("%d of %d", got, n)
		}
		return nil
	})
	f.Await(limit, "all connected", present)
	f.Stop()
	for _, id := range waiting {
		var state slot.Record
		b, err := os.ReadFile(filepath.Join(folder, thing.ID(id).Slug(), "slots", "state.json"))
		if err := errors.Join(err, json.Unmarshal(b, &state)); err != nil {
			t.Fatal(err)
		}
		if state.Fall != nil || len(state.Fell) > 0 {
			t.Errorf("%s booted the release: %+v %+v", id, state.Fall, state.Fell)
		}
		for name, s := range state.Slots {
			if s.Content.Version == bad && (s.Bootable || s.Good || s.Tries < slot.Tries && s.Tries > 0) {
				t.Errorf("%s, slot %s: %+v", id, name, s)
			}
		}
	}
	if len(waiting) == 0 {
		t.Log("none waited for its reboot: it took all of the phase to show")
	}
}

// toldOf checks that people are told why a rollout was stopped or held: by an alert, a letter, the page and kennelctl.
func toldOf(t *testing.T, h *housetest.House, id, version, why, robot string) {
	t.Helper()
	housetest.Await(t, time.Minute, "the alert", func() error {
		var list []struct {
			Code, Reason string
			Resolved     *time.Time
		}
		if err := h.CtlJSON(&list, "alerts", "list"); err != nil {
			return err
		}
		for _, a := range list {
			if a.Code == "rollout of vic "+version && a.Reason == why && a.Resolved == nil {
				return nil
			}
		}
		return fmt.Errorf("%+v", list)
	})
	h.AwaitLetter(t, "ops@staff.example", version, why)
	if _, page := h.Operator(t).Try("GET", "/rollouts", nil); !strings.Contains(string(page), html.EscapeString(why)) {
		t.Errorf("the page does not say %q", why)
	}
	var robots []struct{ Answer, Words string }
	if err := h.CtlJSON(&robots, "rollout", "why", robot); err != nil || len(robots) == 0 || !strings.Contains(robots[0].Words, "started 3 times") {
		t.Errorf("why: %+v, %v", robots, err)
	}
}
