package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"kennel/edge/env/robotfs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// TestSettingsMove: an AmigoBot's settings, which earlier software kept as vic.RobotSettings, get their own name at the start, with a change that
// the cloud does not have yet. A kill at any step of that start leaves nothing that the next start does not put in order.
func TestSettingsMove(t *testing.T) {
	for at := 1; ; at++ {
		cut := false
		t.Run(fmt.Sprintf("cut=%d", at), func(t *testing.T) { cut = moveCut(t, at) })
		if t.Failed() {
			return
		}
		if !cut {
			if at < 5 {
				t.Errorf("only %d places to cut", at-1)
			}
			return
		}
	}
}

// moveCut kills a start at a step, and reports whether the start has that step.
func moveCut(t *testing.T, at int) bool {
	c := newCloud(t)
	r := newRobot(t, c).boot() // as earlier software did
	r.sync()
	r.set(`{"locale":"fr-FR","master_volume":1}`)
	r.sync()
	r.set(`{"master_volume":2}`) // the cloud does not have this
	before := r.file(settingsFile)

	r.cfg.Settings = jdocs.SettingsOf(thing.AmigoBot)
	moved := robotfs.Persistent + "/jdocs/" + string(r.cfg.Settings) + ".json"
	k := &knife{at: at}
	err := r.bootWith(k)
	if k.where != "" && !errors.Is(err, errKilled) {
		t.Errorf("killed %s, but the start knows nothing of it: %v", k.where, err)
	}
	r.boot()
	want(t, "the local copy", fmt.Sprint(r.file(moved)), fmt.Sprint(before))
	want(t, "versions", fmt.Sprint(r.Versions()), fmt.Sprintf("map[amigo.RobotSettings:%v vic.RobotLifetimeStats:1]", before["doc_version"]))
	want(t, "dirty", fmt.Sprint(r.Dirty()), "[amigo.RobotSettings]")
	for _, old := range []string{settingsFile, path.Join(ledgerFolder, path.Base(settingsFile))} {
		if _, err := r.cfg.Root.Stat(old); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v; want none", old, err)
		}
	}
	return k.where != ""
}

// TestSettingsMoveAgain: earlier software that ran again after the move, because an update was rolled back, has the newer copy.
func TestSettingsMoveAgain(t *testing.T) {
	r := newRobot(t, newCloud(t))
	r.cfg.Settings = jdocs.SettingsOf(thing.AmigoBot)
	r.boot()
	r.cfg.Settings = jdocs.RobotSettings
	r.boot().set(`{"master_volume":3}`)
	r.cfg.Settings = jdocs.SettingsOf(thing.AmigoBot)
	r.boot()
	want(t, "volume", r.field(robotfs.Persistent+"/jdocs/amigo.RobotSettings.json", "master_volume"), any(3.0))
	if names, err := fs.Glob(r.cfg.Root.FS(), robotfs.Persistent+"/jdocs/*.RobotSettings.json"); err != nil || len(names) != 1 {
		t.Errorf("files: %v, %v; want one", names, err)
	}
}

// TestVectorKeepsItsSettings: nothing of a Vector moves, and a control file with the former name of an AmigoBot's settings means its own.
func TestVectorKeepsItsSettings(t *testing.T) {
	for name, want := range map[jdocs.Name]string{jdocs.RobotSettings: "map[vic.RobotLifetimeStats:0 vic.RobotSettings:0]",
		jdocs.SettingsOf(thing.AmigoBot): "map[amigo.RobotSettings:0 vic.RobotLifetimeStats:0]"} {
		r := newRobot(t, newCloud(t))
		r.cfg.Settings = name
		r.write(robotfs.Resources+"/"+jdocsConfig, `{"ROBOT_SETTINGS": {"docName": "vic.RobotSettings"}}`)
		for range 2 {
			if got := fmt.Sprint(r.boot().Versions()); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}
