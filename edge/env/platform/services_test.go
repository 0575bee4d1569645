package platform

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/env/robotfs"

	"kennel/edge/env"
	"kennel/edge/env/envtest"
)

func none(string) string { return "" }

// TestServiceDefaults is VEC-CLD-05: every absent key has the seed's default.
func TestServiceDefaults(t *testing.T) {
	root := newRoot(t, nil)
	check := func(name string, got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	u, err := LoadUpdateEngine(root, none)
	check("update-engine", u, UpdateEngine{Enabled: true, OTAType: "diff", URL: "auto"}, err)
	r, err := LoadRebooter(root, none)
	check("rebooter", r, Rebooter{Earliest: time.Hour, Latest: 5 * time.Hour, InhibitorDelay: 17 * time.Second, MinimumUptime: 4 * time.Hour}, err)
	l, err := LoadLogUploader(root, none)
	check("log uploader", l, LogUploader{QuotaMB: 10, Every: 30 * time.Second}, err)
	c, err := LoadCrashUploader(root, none)
	check("crash uploader", c, CrashUploader{Folder: robotfs.Cache + "/crashDumps", Every: 30 * time.Second, KeepLatest: 30}, err)
	f, err := LoadFaultHandler(root, none)
	check("fault handler", f, FaultHandler{RestartLimit: 2, LimitWindow: time.Minute, SigtermAfter: 3 * time.Second, RestartAfter: 5 * time.Second}, err)
	g, err := LoadGatewayFault(root, none)
	check("gateway certificate", g, 920, err)
}

// TestServiceFiles is VEC-CLD-05: files, their order, the process, and mistakes that leave the rest in force.
func TestServiceFiles(t *testing.T) {
	root := newRoot(t, map[string]string{
		UpdateEngineFile:    "UPDATE_ENGINE_BASE_URL=https://ota.example/vic/prod/\nUPDATE_ENGINE_URL=auto\nUPDATE_ENGINE_ALLOW_DOWNGRADE=true\n",
		UpdateEngineAppFile: "UPDATE_ENGINE_URL=https://ota.example/one.ota\n",
		CrashUploaderFile: "VIC_CRASH_UPLOAD_URL=https://crash.example/post # no comment " +
			"here\nVIC_CRASH_UPLOAD_LOG=2\nVIC_CRASH_UPLOADER_KEEP_LATEST=many\n",
		RebooterFile:    "REBOOTER_EARLIEST=7200\nREBOOTER_VERBOSE_LOGGING=1\n",
		LogUploaderFile: "nonsense\n",
	})
	u, err := LoadUpdateEngine(root, none)
	if err != nil || u.URL != "https://ota.example/one.ota" || u.BaseURL != "https://ota.example/vic/prod/" || !u.AllowDowngrade {
		t.Errorf("update-engine %+v, %v", u, err)
	}
	c, err := LoadCrashUploader(root, func(k string) string { return map[string]string{"KENNEL_VIC_CRASH_SCRAPER_PERIOD_SEC": "5"}[k] })
	if err == nil || !strings.Contains(err.Error(), "VIC_CRASH_UPLOADER_KEEP_LATEST") || c.KeepLatest != 30 || !c.UploadLog ||
		c.Every != 5*time.Second || c.URL == "" {
		t.Errorf("crash uploader %+v, %v", c, err)
	}
	other := newRoot(t, map[string]string{CrashUploaderFile: "VIC_CRASH_SCRAPE_PERIOD_SEC=7\nVIC_CRASH_FOLDER=/data/crashes/\n"}) // the other spelling
	if c, err := LoadCrashUploader(other, none); err != nil || c.Every != 7*time.Second || c.Folder != "data/crashes" {
		t.Errorf("crash uploader %+v, %v", c, err)
	}
	outside := newRoot(t, map[string]string{CrashUploaderFile: "VIC_CRASH_FOLDER=/data/../etc\n"})
	if c, err := LoadCrashUploader(outside, none); err == nil || c.Folder != robotfs.Cache+"/crashDumps" {
		t.Errorf("crash uploader %+v, %v", c, err)
	}
	if r, err := LoadRebooter(root, none); err != nil || r.Earliest != 2*time.Hour || !r.Verbose || r.Latest != 5*time.Hour {
		t.Errorf("rebooter %+v, %v", r, err)
	}
	if l, err := LoadLogUploader(root, none); err == nil || !strings.Contains(err.Error(), "line 1") || l.QuotaMB != 10 {
		t.Errorf("log uploader %+v, %v", l, err)
	}
}

// TestBuildsNeverMix is VEC-CLD-06.
func TestBuildsNeverMix(t *testing.T) {
	server := func(build string) string { return `{"kennel":{"api":"https://x:1","build":"` + build + `"}}` }
	for _, tc := range []struct {
		name, version string
		boot          env.Boot
		endpoints     string
		build         Build
		ok            bool
	}{
		{"production", "2.0.0.6074", env.Boot{}, "production", Production, true},
		{"nothing said", "2.0.0.6074", env.Boot{}, "", Production, true},
		{"nothing known", "", env.Boot{}, "", Production, true},
		{"production robot, development cloud", "2.0.0.6074", env.Boot{}, "development", Production, false},
		{"developer's release", "2.0.0.6074d", env.Boot{}, "development", Development, true},
		{"userdev release", "2.0.0.6074ud", env.Boot{}, "production", Development, false},
		{"userdev release, nothing said", "2.0.0.6074ud", env.Boot{}, "", Development, false},
		{"by the kernel", "2.0.0.6074", env.Boot{Dev: true}, "development", Development, true},
		{"unknown class of cloud", "2.0.0.6074", env.Boot{}, "staging", Production, false},
	} {
		files := map[string]string{ServerConfigFile: server(tc.endpoints)}
		if tc.version != "" {
			files[OSVersionFile] = tc.version + "\n"
		}
		root, hw := newRoot(t, files), envtest.Hardware{Started: tc.boot}
		if b, err := RobotBuild(root, hw); err != nil || b != tc.build {
			t.Errorf("%s: %s, %v", tc.name, b, err)
		}
		_, err := LoadEndpoints(root, hw)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !tc.ok && !strings.Contains(err.Error(), string(tc.build)) {
			t.Errorf("%s: %v does not name both", tc.name, err)
		}
	}
}
