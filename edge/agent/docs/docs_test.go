package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

func TestFirstStart(t *testing.T) { // VEC-JDS-07, VEC-DOC-01, part of VEC-DOC-07
	r := newRobot(t, newCloud(t)).boot()
	f := r.file(settingsFile)
	for _, k := range []string{"client_meta", "cloud_accessed", "cloud_dirty_remainning_sec", "cloud_get_time", "doc_version", "fmt_version", "jdoc"} {
		if _, ok := f[k]; !ok {
			t.Errorf("no %s in %v", k, f)
		}
	}
	want(t, "fields of the file", len(f), 7)
	want(t, "volume", r.field(settingsFile, "master_volume"), any(4.0))
	want(t, "format", f["fmt_version"], any(2.0))
	want(t, "accessed", f["cloud_accessed"], any(false))
	want(t, "keys of the statistics", len(r.file(statsFile)["jdoc"].(map[string]any)), 41)
	want(t, "dirty before it met the cloud", len(r.Dirty()), 0)
	r.sync()
	r.inStep(settingsFile, statsFile)
	f = r.file(settingsFile)
	want(t, "version", f["doc_version"], any(1.0))
	want(t, "accessed", f["cloud_accessed"], any(true))
	want(t, "told", len(r.told), 0)
}

// TestNoSettings: a robot of a species whose settings Kennel does not know keeps its statistics, and says that it has none to set.
func TestNoSettings(t *testing.T) {
	r := newRobot(t, newCloud(t))
	r.cfg.Settings = ""
	r.boot().sync()
	r.inStep(statsFile)
	want(t, "versions", fmt.Sprint(r.Versions()), "map[vic.RobotLifetimeStats:1]")
	if err := r.Set(t.Context(), r.cfg.Settings, parse(t, `{"master_volume":1}`)); errs.KindOf(err) != errs.NotFound {
		t.Errorf("set: %v", err)
	}
}

// TestOwn: a kind of robot has further documents, and may have fewer settings; all are kept alike.
func TestOwn(t *testing.T) {
	const own, settingsFile = robotfs.Persistent + "/jdocs/body.Parameters.json", robotfs.Persistent + "/jdocs/amigo.RobotSettings.json"
	r := newRobot(t, newCloud(t))
	r.cfg.Settings = jdocs.SettingsOf(thing.AmigoBot)
	r.write(robotfs.Resources+"/config/engine/settings_config.json", `{"eye_color": {"defaultValue": 3, "updateCloudOnChange": true}}`) // of a Vector
	r.cfg.Own = map[jdocs.Name]map[string]json.RawMessage{"body.Parameters": {"gain": json.RawMessage("3")}}
	r.boot().sync()
	r.inStep(settingsFile, statsFile, own)
	want(t, "gain", r.field(own, "gain"), any(3.0))
	want(t, "settings", strings.Join(slices.Sorted(maps.Keys(r.file(settingsFile)["jdoc"].(map[string]any))), " "),
		"clock_24_hour default_location dist_is_metric locale master_volume temp_is_fahrenheit time_zone")
	if err := r.Set(t.Context(), "body.Parameters", parse(t, `{"gain":4}`)); err != nil {
		t.Fatal(err)
	}
	r.sync()
	r.inStep(own)
	want(t, "gain in the cloud", r.cloud.doc("body.Parameters").JSON, `{"gain":4}`)
}

func TestCloudChangeReachesTheFile(t *testing.T) { // VEC-JDS-12
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.sync()
	c.set(jdocs.RobotSettings, `{"master_volume":1,"custom_eye_color.hue":0.1}`)
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "volume", r.field(settingsFile, "master_volume"), any(1.0))
	want(t, "told", fmt.Sprint(r.told), "[cloud vic.RobotSettings custom_eye_color,master_volume]")
}

func TestBothSidesChange(t *testing.T) { // VEC-JDS-08
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.sync()
	r.set(`{"master_volume":"high","locale":"de-DE"}`)
	want(t, "dirty", fmt.Sprint(r.Dirty()), "[vic.RobotSettings]")
	want(t, "remaining", r.file(settingsFile)["cloud_dirty_remainning_sec"], any(1.0))
	c.set(jdocs.RobotSettings, `{"eye_color":3,"locale":"fr-FR","of_a_newer_app":{"x":1}}`)
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "changed here", r.field(settingsFile, "master_volume"), any(5.0))
	want(t, "changed there", r.field(settingsFile, "eye_color"), any(3.0))
	want(t, "changed on both: accepted later", r.field(settingsFile, "locale"), any("de-DE"))
	want(t, "unknown", fmt.Sprint(r.field(settingsFile, "of_a_newer_app")), "map[x:1]")
	revs, err := c.History(t.Context(), jdocs.Key{Thing: rex, Name: jdocs.RobotSettings}, 10)
	if err != nil || len(revs) != 3 || !strings.Contains(revs[1].JSON, "fr-FR") {
		t.Errorf("the loser is not in the history: %v, %v", revs, err)
	}
}

func TestSetRefusesWhatTheDocumentCannotHold(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	before := r.file(settingsFile)
	err := r.Set(t.Context(), jdocs.RobotSettings, parse(t, `{"locale":"de-DE","master_volume":7}`))
	if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "5 HIGH") {
		t.Errorf("set: %v", err)
	}
	want(t, "file", fmt.Sprint(r.file(settingsFile)), fmt.Sprint(before))
	if err := r.Set(t.Context(), "vic.Other", nil); errs.KindOf(err) != errs.NotFound {
		t.Errorf("set of a document that is not kept: %v", err)
	}
}

func TestCountersAddUp(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.sync()
	r.count("Pet.ms", 5)
	c.set(jdocs.RobotLifetimeStats, `{"Pet.ms":100}`)
	r.sync()
	r.count("Pet.ms", 1)
	r.sync()
	r.inStep(statsFile)
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(106.0))
}

// TestLostAnswerToACreate: a document that was deleted is made again, the answer is lost and the cloud changes it. The robot finds its own
// version and puts nothing back, nor counts twice (VEC-JDS-08).
func TestLostAnswerToACreate(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.set(`{"locale":"de-DE"}`)
	r.count("Pet.ms", 5)
	r.sync()
	for _, name := range []jdocs.Name{jdocs.RobotSettings, jdocs.RobotLifetimeStats} {
		if _, err := c.Delete(t.Context(), jdocs.Key{Thing: rex, Name: name}, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	r.count("Pet.ms", 7)
	r.set(`{"locale":"it-IT"}`)
	c.fault = func(call string) error {
		if call == "write answer" {
			return errLink
		}
		return nil
	}
	if err := r.Sync(t.Context()); err == nil {
		t.Error("the exchange knows nothing of the lost answers")
	}
	c.fault = nil
	c.set(jdocs.RobotSettings, `{"locale":"fr-FR"}`)
	c.set(jdocs.RobotLifetimeStats, `{"Pet.ms":112}`)
	r.boot()
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "locale", r.field(settingsFile, "locale"), any("fr-FR"))
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(112.0))
}

func TestAfterAWipeTheCloudWins(t *testing.T) { // VEC-JDS-08, part of VEC-DOC-07
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.set(`{"master_volume":1,"time_zone":"Europe/Berlin"}`)
	r.count("Pet.ms", 50)
	r.count("Alive.seconds", 900)
	r.sync()
	if err := os.RemoveAll(filepath.Join(r.dir, "data")); err != nil {
		t.Fatal(err)
	}
	r.boot()
	want(t, "before it met the cloud", r.field(settingsFile, "master_volume"), any(4.0))
	r.count("Pet.ms", 2)
	r.count("Alive.seconds", 3)
	r.set(`{"eye_color":2}`) // chosen since the wipe
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "volume", r.field(settingsFile, "master_volume"), any(1.0))
	want(t, "time zone", r.field(settingsFile, "time_zone"), any("Europe/Berlin"))
	want(t, "chosen since", r.field(settingsFile, "eye_color"), any(2.0))
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(52.0))
	want(t, "age began again", r.field(statsFile, "Alive.seconds"), any(3.0))
}

func TestControlFile(t *testing.T) { // VEC-DOC-04, VEC-CLD-04
	c := newCloud(t)
	r := newRobot(t, c)
	r.write(robotfs.Resources+"/config/engine/settings_config.json", `{
		// what this release begins with
		"master_volume": {"defaultValue": "LOW", "updateCloudOnChange": true},
		"default_location": {"defaultValue": "here", "updateCloudOnChange": false} /* stays */
	}`)
	r.boot()
	r.set(`{"default_location":"Kreuzberg","locale":"de-DE"}`)
	r.sync()
	want(t, "volume", r.field(settingsFile, "master_volume"), any(1.0))
	want(t, "kept here", r.field(settingsFile, "default_location"), any("Kreuzberg"))
	if text := c.doc(jdocs.RobotSettings).JSON; strings.Contains(text, "Kreuzberg") || strings.Contains(text, "default_location") ||
		!strings.Contains(text, "de-DE") {
		t.Errorf("in the cloud: %s", text)
	}
	r.set(`{"default_location":"Neukölln"}`)
	want(t, "dirty", len(r.Dirty()), 0)
	c.set(jdocs.RobotSettings, `{"eye_color":1}`)
	r.sync()
	want(t, "kept here", r.field(settingsFile, "default_location"), any("Neukölln"))
	want(t, "from the cloud", r.field(settingsFile, "eye_color"), any(1.0))
	c.set(jdocs.RobotSettings, `{"default_location":"Oslo"}`) // on purpose
	r.sync()
	want(t, "set by the cloud", r.field(settingsFile, "default_location"), any("Oslo"))

	r.write(robotfs.Resources+"/config/engine/settings_config.json", `{"master_volume": {"defaultValue": "LOUD"}}`)
	if _, err := New(r.cfg); err == nil || !strings.Contains(err.Error(), "MEDIUM_HIGH") || !strings.Contains(err.Error(), "settings_config.json") {
		t.Errorf("a default that cannot be: %v", err)
	}
}

func TestJdocsConfig(t *testing.T) { // VEC-JDS-06
	const name = robotfs.Resources + "/config/engine/jdocs_config.json"
	r := newRobot(t, newCloud(t))
	r.write(name, `{"ROBOT_SETTINGS": {"docName": "my.Settings", "cloudGetPeriod_sec": 7, "cloudSavePeriod_sec": 0.5}, "ACCOUNT_SETTINGS": {"docName": "vic.AccountSettings"}}`)
	r.boot()
	if _, err := r.find("my.Settings"); err != nil {
		t.Error(err)
	}
	want(t, "get", r.docs[0].getEvery, 7*time.Second)
	want(t, "save", r.docs[0].saveAfter, 500*time.Millisecond)
	want(t, "the other's", r.docs[1].getEvery, statsGet)
	for content, part := range map[string]string{
		`{"ROBOT_SETTINGS": {"docName": "../x"}}`:                                        "docName",
		`{"ROBOT_SETTINGS": {"cloudGetPeriod_sec": 0}}`:                                  "cloudGetPeriod_sec",
		`{"ROBOT_SETTINGS": {"cloudSavePeriod_sec": -1}}`:                                "cloudSavePeriod_sec",
		`{"ROBOT_SETTINGS": {"docName": "a"}, "ROBOT_LIFETIME_STATS": {"docName": "a"}}`: "taken",
		`{`: "jdocs_config.json",
	} {
		r.write(name, content)
		if _, err := New(r.cfg); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v; want an error with %q", content, err, part)
		}
	}
}

func TestFileEditedByOthers(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.sync()
	edit := func(old, new string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(r.dir, settingsFile))
		if err != nil {
			t.Fatal(err)
		}
		r.write(settingsFile, strings.Replace(string(b), old, new, 1))
	}
	edit(`"master_volume": 4`, `"master_volume": 2`)
	want(t, "seen", r.changedFile(), "[file vic.RobotSettings master_volume]")
	want(t, "dirty", fmt.Sprint(r.Dirty()), "[vic.RobotSettings]")
	r.sync()
	r.inStep(settingsFile)

	// A program reads the file, the cloud changes it meanwhile, the program writes the old copy back with a change.
	old, err := os.ReadFile(filepath.Join(r.dir, settingsFile))
	if err != nil {
		t.Fatal(err)
	}
	c.set(jdocs.RobotSettings, `{"eye_color":5}`)
	r.sync()
	r.write(settingsFile, strings.Replace(string(old), `"en-US"`, `"en-GB"`, 1))
	r.reload(true)
	want(t, "their change", r.field(settingsFile, "locale"), any("en-GB"))
	want(t, "what came meanwhile", r.field(settingsFile, "eye_color"), any(5.0))
	want(t, "version", r.file(settingsFile)["doc_version"], any(3.0))
	r.sync()
	r.inStep(settingsFile)

	// Both spellings of the misspelt field, and comments, are read.
	edit(`"cloud_dirty_remainning_sec"`, `"cloud_dirty_remaining_sec"`)
	edit(`"locale": "en-GB",`, `"locale": "en-AU", // down under`)
	r.reload(true)
	r.sync()
	r.inStep(settingsFile)
	want(t, "locale in the cloud", strings.Contains(c.doc(jdocs.RobotSettings).JSON, "en-AU"), true)
}

// changedFile looks at the files once and returns what was told since the last time.
func (r *robot) changedFile() string {
	r.told = nil
	r.reload(true)
	return fmt.Sprint(r.told)
}

// TestQuickEdits: a program edits the file twice within one tick of the file system's clock, both as long. Neither edit is lost.
func TestQuickEdits(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	r.set(`{"x":1000,"y":0}`)
	path := filepath.Join(r.dir, settingsFile)
	tick := time.Now()
	for _, x := range []int{1001, 1002} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r.write(settingsFile, strings.Replace(string(b), fmt.Sprintf(`"x": %d`, x-1), fmt.Sprintf(`"x": %d`, x), 1))
		if err := os.Chtimes(path, tick, tick); err != nil {
			t.Fatal(err)
		}
		r.reload(false)
	}
	r.set(`{"y":1}`)
	want(t, "x", r.field(settingsFile, "x"), any(1002.0))
}

func TestDamagedFiles(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.set(`{"master_volume":1}`)
	r.sync()
	for name, spoil := range map[string]func(){
		"local copy cut":       func() { r.write(settingsFile, `{"client_meta":"","jdoc":{"ma`) },
		"local copy empty":     func() { r.write(settingsFile, "") },
		"local copy gone":      func() { _ = os.Remove(filepath.Join(r.dir, settingsFile)) },
		"no document in it":    func() { r.write(settingsFile, `{"jdoc":[1,2]}`) },
		"ledger cut":           func() { r.write(ledgerFolder+"/vic.RobotSettings.json", `{"bases":[{"doc`) },
		"ledger gone":          func() { _ = os.Remove(filepath.Join(r.dir, ledgerFolder, "vic.RobotSettings.json")) },
		"ledger with a scalar": func() { r.write(ledgerFolder+"/vic.RobotSettings.json", `{"bases":[{"doc_version":1,"jdoc":7}]}`) },
	} {
		spoil()
		r.boot()
		r.sync()
		if r.inStep(settingsFile); t.Failed() {
			t.Fatal(name)
		}
		want(t, name, r.field(settingsFile, "master_volume"), any(1.0))
	}

	// While it runs: a damaged file counts as a program's unfinished write for a while, then it is written again.
	r.write(settingsFile, `{"jdoc":`)
	r.reload(true)
	want(t, "told to be spoiled", r.docs[0].spoiled.IsZero(), false)
	r.docs[0].spoiled = r.docs[0].spoiled.Add(-spoiledFor)
	r.reload(true)
	r.inStep(settingsFile)
}

// TestLostLedgerKeepsOfflineChanges: the cloud's history knows the version that the local copy was made from.
func TestLostLedgerKeepsOfflineChanges(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c).boot()
	r.sync()
	r.set(`{"master_volume":1}`)
	r.count("Pet.ms", 5)
	c.set(jdocs.RobotSettings, `{"eye_color":2}`)
	c.set(jdocs.RobotLifetimeStats, `{"Pet.ms":100}`)
	if err := os.RemoveAll(filepath.Join(r.dir, ledgerFolder)); err != nil {
		t.Fatal(err)
	}
	r.boot()
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "here", r.field(settingsFile, "master_volume"), any(1.0))
	want(t, "there", r.field(settingsFile, "eye_color"), any(2.0))
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(105.0))
}

func TestCloudLostVersions(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	r.set(`{"master_volume":1}`)
	r.sync()
	r.set(`{"master_volume":2}`)
	r.sync()
	// Restored from before the second change: the robot's copy is the newer one.
	older := newCloud(t)
	older.set(jdocs.RobotSettings, `{"master_volume":1,"locale":"fr-FR"}`)
	r.cloud, r.cfg.Remote = older, remote{older}
	r.boot()
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "volume", r.field(settingsFile, "master_volume"), any(2.0))
	// A new cloud that has never seen the robot.
	fresh := newCloud(t)
	r.cloud, r.cfg.Remote = fresh, remote{fresh}
	r.boot()
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "volume", r.field(settingsFile, "master_volume"), any(2.0))
	// A deleted document is created again, with a version that was never used.
	r.set(`{"master_volume":3}`)
	r.sync()
	if _, err := fresh.Delete(t.Context(), jdocs.Key{Thing: rex, Name: jdocs.RobotSettings}, "ann"); err != nil {
		t.Fatal(err)
	}
	r.sync()
	r.inStep(settingsFile, statsFile)
	want(t, "version", r.file(settingsFile)["doc_version"], any(4.0))
}

func TestOlderFormatIsRaised(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c)
	// A file as software before 1.8 left it.
	r.write(settingsFile, `{"client_meta":"","cloud_accessed":true,"cloud_dirty_remainning_sec":0,"cloud_get_time":1,"doc_version":0,"fmt_version":1,"jdoc":{"master_volume":1}}`)
	r.boot()
	r.sync()
	want(t, "format", c.doc(jdocs.RobotSettings).FmtVersion, 2)
	d, err := r.Get(jdocs.RobotSettings)
	if err != nil || !strings.Contains(d.JSON, `"custom_eye_color"`) || !strings.Contains(d.JSON, `"master_volume":1`) { // VEC-DOC-01
		t.Errorf("with defaults: %s, %v", d.JSON, err)
	}
}

func TestStatusForPresence(t *testing.T) {
	c := newCloud(t)
	r := newRobot(t, c).boot()
	want(t, "versions", fmt.Sprint(r.Versions()), "map[vic.RobotLifetimeStats:0 vic.RobotSettings:0]")
	r.sync()
	want(t, "versions", fmt.Sprint(r.Versions()), "map[vic.RobotLifetimeStats:1 vic.RobotSettings:1]")
	c.fault = func(string) error { return errLink }
	r.Connected()
	r.exchange(t.Context(), r.docs[0])
	if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0].Text, "vic.RobotSettings: read: no answer") || p[0].Token() != "documents/not_synced" {
		t.Errorf("problems: %+v", p)
	}
	if at := r.at(r.docs[0]); !at.After(time.Now()) || at.After(time.Now().Add(retryFirst)) {
		t.Errorf("next try in %v, want within %v", time.Until(at), retryFirst)
	}
	c.fault = nil
	r.exchange(t.Context(), r.docs[0])
	want(t, "problems", len(r.Problems()), 0)
}

func TestNotANumberIsNotCounted(t *testing.T) {
	r := newRobot(t, newCloud(t)).boot()
	zero := 0.0
	r.AddStats(map[string]float64{"Pet.ms": 1 / zero, "Odom.Body": zero / zero, "Alive.seconds": 2})
	r.count("Odom.RWheel", 3)
	want(t, "Pet.ms", r.field(statsFile, "Pet.ms"), any(0.0))
	want(t, "Alive.seconds", r.field(statsFile, "Alive.seconds"), any(2.0))
	want(t, "Odom.Rwheel", r.field(statsFile, "Odom.Rwheel"), any(3.0))
}
