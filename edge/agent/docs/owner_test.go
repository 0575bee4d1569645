package docs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
	"kennel/jdocs"
)

// Copies of the owner's documents.
const (
	accountFile     = "data/data/com.anki.victor/persistent/jdocs/vic.AccountSettings.json"
	entitlementFile = "data/data/com.anki.victor/persistent/jdocs/vic.UserEntitlements.json"
)

// known returns a robot that keeps copies of the documents of its owner ann.
func known(t *testing.T) (*robot, *owned) {
	t.Helper()
	c := newCloud(t)
	r := newRobot(t, c)
	o := &owned{remote{c}, "ann"}
	r.cfg.Remote, r.cfg.Owner = o, true
	return r, o
}

// ann changes a document of hers in the cloud.
func (o *owned) ann(t *testing.T, name jdocs.Name, fields string) {
	t.Helper()
	if _, err := o.Set(context.Background(), jdocs.Key{Account: "ann", Name: name}, parse(t, fields), "ann"); err != nil {
		t.Fatal(err)
	}
}

// TestOwnersCopy: the robot has the documents of its owner in files of the original's form, from the first contact on, and its programs read them also
// after a restart without a cloud; a new owner's, or none's, replace them (VEC-JDS-07, VEC-DOC-05, VEC-DOC-06).
func TestOwnersCopy(t *testing.T) {
	r, o := known(t)
	o.ann(t, jdocs.AccountSettings, `{"data_collection":true,"app_locale":"de-DE"}`)
	o.ann(t, jdocs.UserEntitlements, `{"kickstarter_eyes":true}`)
	r.boot()
	if _, err := r.Reach().Get(t.Context(), jdocs.AccountSettings); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("before the first contact: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		r.cfg.Unwatched = true
		r.boot()
		go func() { done <- r.Run(ctx) }()
		r.Connected()
		synctest.Wait()
		f := r.file(accountFile)
		for key, is := range map[string]any{"client_meta": "", "cloud_accessed": true, "cloud_dirty_remainning_sec": 0.0, "doc_version": 1.0, "fmt_version": 1.0} {
			want(t, key, f[key], is)
		}
		if at, ok := f["cloud_get_time"].(float64); !ok || at != float64(time.Now().Unix()) {
			t.Errorf("cloud_get_time %v", f["cloud_get_time"])
		}
		want(t, "language", r.field(accountFile, "app_locale"), any("de-DE"))
		want(t, "entitlement", r.field(entitlementFile, "kickstarter_eyes"), any(true))
		// A hint brings a change at once; without one it comes with the next look, an hour later.
		o.ann(t, jdocs.AccountSettings, `{"app_locale":"fr-FR"}`)
		r.Hint(map[string]uint64{"vic.AccountSettings": 1})
		synctest.Wait()
		want(t, "hinted", r.field(accountFile, "app_locale"), any("fr-FR"))
		o.ann(t, jdocs.UserEntitlements, `{"kickstarter_eyes":false}`)
		time.Sleep(ownerGet - time.Second)
		synctest.Wait()
		want(t, "before the hour", r.field(entitlementFile, "kickstarter_eyes"), any(true))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want(t, "after the hour", r.field(entitlementFile, "kickstarter_eyes"), any(false))
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	r.boot() // and no cloud
	d, err := r.Reach().Get(t.Context(), jdocs.AccountSettings)
	if err != nil || d.Version != 2 || !jdocs.Equal([]byte(d.JSON), []byte(`{"data_collection":true,"app_locale":"fr-FR"}`)) {
		t.Errorf("from the copy: %+v, %v", d, err)
	}
	if _, err := r.Reach().Set(t.Context(), jdocs.AccountSettings, parse(t, `{"app_locale":"en-GB"}`)); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a change without the cloud: %v", err)
	}
	r.Connected()
	if d, err = r.Reach().Set(t.Context(), jdocs.AccountSettings, parse(t, `{"app_locale":"en-GB"}`)); err != nil || d.Version != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	want(t, "a change from here", r.field(accountFile, "app_locale"), any("en-GB"))
	o.owner = ""
	if d, err = r.Reach().Get(t.Context(), jdocs.AccountSettings); err != nil || d.Version != 0 || field(d.JSON, "data_collection") != "false" || field(d.JSON, "app_locale") != `"en-US"` {
		t.Errorf("without an owner: %+v, %v", d, err)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, accountFile))
	if err != nil || strings.Contains(string(b), "en-GB") {
		t.Errorf("ann's is there still: %s, %v", b, err)
	}
	r.write(accountFile, `{"jdoc": [`)
	r.boot()
	if _, err := r.Reach().Get(t.Context(), jdocs.AccountSettings); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a damaged copy: %v", err)
	}
}

// TestOwnersControls: the names, periods and defaults of the owner's documents are those of the control files, in capitals or not, and a field whose changes
// the cloud does not get stays on the robot (VEC-JDS-06, VEC-DOC-04). Consent is never one.
func TestOwnersControls(t *testing.T) {
	const resources = robotfs.Resources + "/config/engine/"
	r, o := known(t)
	r.write(resources+"jdocs_config.json", `{"ACCOUNT_SETTINGS": {"docName": "vic.AccountSettings", "cloudGetPeriod_sec": 7}, "USER_ENTITLEMENTS": {"docName": "vic.Odd"}}`)
	r.write("anki/etc/config/engine/accountSettings_config.json", `{"APP_LOCALE": {"defaultValue": "fr-FR", "updateCloudOnChange": false}, "data_collection": {"updateCloudOnChange": true}}`)
	r.write(resources+"userEntitlements_config.json", `{"KICKSTARTER_EYES": {"defaultValue": true}}`)
	r.boot()
	want(t, "documents", len(r.owners), 2)
	want(t, "period", r.owners[0].getEvery, 7*time.Second)
	want(t, "the other's", r.owners[1].getEvery, time.Hour)
	want(t, "name", r.owners[1].name, jdocs.UserEntitlements)
	r.Connected()
	reach := r.Reach()
	get := func(what string, name jdocs.Name, text string, version uint64) {
		t.Helper()
		if d, err := reach.Get(t.Context(), name); err != nil || d.Version != version || !jdocs.Equal([]byte(d.JSON), []byte(text)) {
			t.Errorf("%s: %+v, %v; want %s of version %d", what, d, err, text, version)
		}
	}
	get("defaults", jdocs.AccountSettings, `{"app_locale":"fr-FR","data_collection":false}`, 0)
	get("defaults", jdocs.UserEntitlements, `{"kickstarter_eyes":true}`, 0)
	if _, err := reach.Set(t.Context(), jdocs.AccountSettings, parse(t, `{"APP_LOCALE":"de-DE","data_collection":true}`)); err != nil {
		t.Fatal(err)
	}
	get("both", jdocs.AccountSettings, `{"app_locale":"de-DE","data_collection":true}`, 1)
	rev, err := o.Get(t.Context(), jdocs.Key{Account: "ann", Name: jdocs.AccountSettings})
	if err != nil || !jdocs.Equal([]byte(rev.JSON), []byte(`{"data_collection":true}`)) {
		t.Errorf("in the cloud: %+v, %v", rev, err)
	}
	o.ann(t, jdocs.AccountSettings, `{"app_locale":"en-AU"}`)
	get("its own stays", jdocs.AccountSettings, `{"app_locale":"de-DE","data_collection":true}`, 2)
	if _, err := reach.Set(t.Context(), jdocs.AccountSettings, parse(t, `{"app_locale":"en-GB"}`)); err != nil {
		t.Fatal(err)
	}
	r.boot()
	get("after a restart, without a cloud", jdocs.AccountSettings, `{"app_locale":"en-GB","data_collection":true}`, 2)
	if _, err := reach.Set(t.Context(), jdocs.AccountSettings, parse(t, `{"app_locale":7}`)); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a wrong value: %v", err)
	}
	for name, tt := range map[string][2]string{
		"consent":         {"anki/etc/config/engine/accountSettings_config.json", `{"DATA_COLLECTION": {"updateCloudOnChange": false}}`},
		"a wrong default": {resources + "userEntitlements_config.json", `{"kickstarter_eyes": {"defaultValue": "yes"}}`},
		"a broken file":   {resources + "userEntitlements_config.json", `{`},
		"a period":        {resources + "jdocs_config.json", `{"USER_ENTITLEMENTS": {"cloudGetPeriod_sec": 0}}`},
	} {
		r, _ := known(t)
		r.write(tt[0], tt[1])
		if _, err := New(r.cfg); err == nil || !strings.Contains(err.Error(), filepath.Base(tt[0])) {
			t.Errorf("%s: %v, want an error that names %s", name, err, tt[0])
		}
	}
	r, _ = known(t)
	r.cfg.Owner = false
	if r.boot(); len(r.owners) != 0 {
		t.Error("a robot of many in a process keeps copies")
	}
}
