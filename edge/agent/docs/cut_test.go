package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"kennel/edge/env/robotfs"
	"kennel/infra/pg/pgtest"
	"kennel/jdocs"

	"github.com/jackc/pgx/v5/pgxpool"
)

var errKilled = errors.New("killed")

// knife kills the robot at one step: before or after a write to disk, before or after the cloud got a request. From then on nothing
// works.
type knife struct {
	files
	at, step int // the step that fails, counted from 1; 0: none
	where    string
}

func (k *knife) cut(where string) error {
	k.step++
	if k.at == 0 || k.step < k.at {
		return nil
	}
	if k.step == k.at {
		k.where = where
	}
	return errKilled
}

func (k *knife) Write(name string, data []byte) error {
	if err := k.cut("before write of " + path.Base(path.Dir(name))); err != nil {
		return err
	}
	if err := k.files.Write(name, data); err != nil {
		return err
	}
	return k.cut("after write of " + path.Base(path.Dir(name)))
}

func (k *knife) Rename(from, to string) error {
	if err := k.cut("before rename in " + path.Base(path.Dir(to))); err != nil {
		return err
	}
	if err := k.files.Rename(from, to); err != nil {
		return err
	}
	return k.cut("after rename in " + path.Base(path.Dir(to)))
}

func (k *knife) Stat(name string) (fs.FileInfo, error) { return k.files.Stat(name) }

// bootWith starts the agent on files that a knife cuts.
func (r *robot) bootWith(k *knife) error {
	k.files = rootFiles{r.cfg.Root}
	a, err := newAgent(r.cfg, k)
	r.Agent = a
	return err
}

// TestKillAtEveryStep kills the robot at each step of an exchange in which both sides changed the same and different things, and at the
// next start finds everything in place: nothing lost, nothing counted twice, no version going back.
func TestKillAtEveryStep(t *testing.T) {
	pool := pgtest.New(t)
	for _, meanwhile := range []bool{false, true} { // the cloud changes once more before the robot is back
		for _, again := range []bool{false, true} { // the robot changes once more before it reaches the cloud
			cuts := 0
			for at := 1; ; at++ {
				done := false
				t.Run(fmt.Sprintf("meanwhile=%v again=%v cut=%d", meanwhile, again, at), func(t *testing.T) {
					done = killAt(t, pool, at, meanwhile, again)
				})
				if done || t.Failed() {
					break
				}
				cuts++
			}
			if !t.Failed() && cuts < 20 {
				t.Errorf("only %d places to cut", cuts)
			}
		}
	}
}

// killAt reports whether the exchange had fewer steps than at.
func killAt(t *testing.T, pool *pgxpool.Pool, at int, meanwhile, again bool) (done bool) {
	if _, err := pool.Exec(t.Context(), `WITH d AS (DELETE FROM jdocs_doc) DELETE FROM jdocs_history`); err != nil {
		t.Fatal(err)
	}
	c := cloudOn(t, pool)
	r := newRobot(t, c).boot()
	r.sync()
	r.set(`{"master_volume":1,"locale":"de-DE"}`)
	r.count("Pet.ms", 5)
	c.set(jdocs.RobotSettings, `{"eye_color":3,"locale":"fr-FR"}`)
	c.set(jdocs.RobotLifetimeStats, `{"Pet.ms":100}`)
	before := r.Versions()

	k := &knife{}
	if err := r.bootWith(k); err != nil {
		t.Fatal(err)
	}
	k.at, k.step = at, 0
	c.fault = k.cut
	err := r.Sync(t.Context())
	if k.where == "" {
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	if err == nil {
		t.Errorf("killed %s, but the exchange knows nothing of it", k.where)
	}
	t.Log("killed ", k.where)
	c.fault = nil

	pets, volume := 105.0, 1.0
	if meanwhile {
		var have float64
		if _, err := fmt.Sscan(string(parse(t, c.doc(jdocs.RobotLifetimeStats).JSON)["Pet.ms"]), &have); err != nil {
			t.Fatal(err)
		}
		c.set(jdocs.RobotLifetimeStats, fmt.Sprintf(`{"Pet.ms":%v}`, have+1000))
		c.set(jdocs.RobotSettings, `{"dist_is_metric":true}`)
		pets += 1000
	}
	r.boot()
	noneWentBack(t, before, r.Versions())
	if again {
		r.count("Pet.ms", 7)
		r.set(`{"master_volume":2}`)
		pets, volume = pets+7, 2
	}
	after := r.Versions()
	r.sync()
	noneWentBack(t, after, r.Versions())
	r.inStep(settingsFile, statsFile)
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(pets))
	want(t, "changed here", r.field(settingsFile, "master_volume"), any(volume))
	want(t, "changed there", r.field(settingsFile, "eye_color"), any(3.0))
	want(t, "changed on both", r.field(settingsFile, "locale"), any("de-DE"))
	want(t, "changed meanwhile", r.field(settingsFile, "dist_is_metric"), any(meanwhile))
	return false
}

func noneWentBack(t *testing.T, before, after map[string]uint64) {
	t.Helper()
	for name, v := range before {
		if after[name] < v {
			t.Errorf("%s went back from version %d to %d", name, v, after[name])
		}
	}
}

// TestKillAtFirstStart: a robot that dies while it makes its files makes them at the next start.
func TestKillAtFirstStart(t *testing.T) {
	for at := 1; ; at++ {
		r := newRobot(t, newCloud(t))
		k := &knife{at: at}
		if err := r.bootWith(k); k.where == "" {
			if err != nil || at < 8 {
				t.Fatalf("%d steps, %v; want at least 8", at-1, err)
			}
			return
		}
		r.boot()
		r.sync()
		r.inStep(settingsFile, statsFile)
	}
}

// TestDiskFull: a change that cannot be saved is refused and not half made; counters stay in memory.
func TestDiskFull(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	r.sync()
	k := &knife{}
	if err := r.bootWith(k); err != nil {
		t.Fatal(err)
	}
	k.at, k.step = 1, 0
	r.AddStats(map[string]float64{"Pet.ms": 5})
	if err := r.Set(t.Context(), jdocs.RobotSettings, parse(t, `{"master_volume":1}`)); !errors.Is(err, errKilled) {
		t.Errorf("set: %v, want the disk's error", err)
	}
	if err := r.FlushStats(); !errors.Is(err, errKilled) {
		t.Errorf("flush: %v, want the disk's error", err)
	}
	want(t, "dirty", len(r.Dirty()), 0)
	k.at = 0
	if err := r.FlushStats(); err != nil {
		t.Fatal(err)
	}
	want(t, "volume", r.field(settingsFile, "master_volume"), any(4.0))
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(5.0))
	if names, err := fs.Glob(r.cfg.Root.FS(), robotfs.Persistent+"/jdocs/*"); err != nil || len(names) != 2 {
		t.Errorf("files: %v, %v; want two", names, err)
	}
}
