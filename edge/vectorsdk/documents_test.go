package vectorsdk_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/agent/features"
	"kennel/edge/agent/host"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
	"kennel/jdocs"
)

// TestFeatureFlags: a flag is known or not, and on as the robot's software has it now; the list has all of the original's, or those that are asked for
// (VEC-FEA-01, VEC-FEA-02).
func TestFeatureFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, want := range map[string]string{"Volume": `{"status":{"code":1},"valid_feature":true,"feature_enabled":true}`,
		"AttentionTransfer": `{"status":{"code":1},"valid_feature":true,"feature_enabled":false}`,
		"Alexa":             `{"status":{"code":1},"valid_feature":true,"feature_enabled":false}`, // VEC-END-03
		"Fly":               `{"status":{"code":1},"valid_feature":false,"feature_enabled":false}`} {
		if _, _, body := d.post(t, "look", "/v1/feature_flag", `{"feature_name":"`+name+`"}`); !sameJSON(body, want) {
			t.Errorf("%s: %s, want %s", name, body, want)
		}
	}
	if err := d.gate.Override("Volume", features.Disabled); err != nil {
		t.Fatal(err)
	}
	c := d.dial(t)
	if a, err := c.GetFeatureFlag(as(t, "look"), &vectorpb.FeatureFlagRequest{FeatureName: "Volume"}); err != nil || a.FeatureEnabled {
		t.Errorf("overridden: %v, %v", a, err)
	}
	all, err := c.GetFeatureFlagList(as(t, "look"), &vectorpb.FeatureFlagListRequest{})
	if err != nil || len(all.List) != 30 || !slices.Contains(all.List, "Alexa_UK") {
		t.Errorf("%d features: %v, %v", len(all.GetList()), all, err)
	}
	if _, _, body := d.post(t, "look", "/v1/feature_flag_list", `{"request_list":["Volume","Fly"]}`); !sameJSON(body, `{"status":{"code":1},"list":["Volume"]}`) {
		t.Error(body)
	}
}

// changed awaits a jdocs_changed event of one document.
func (l *listener) changed(kind vectorpb.JdocType) {
	l.t.Helper()
	l.await(func(e *vectorpb.Event) bool { return slices.Contains(e.GetJdocsChanged().GetJdocTypes(), kind) })
}

// TestSettings: a program changes settings of the robot; what it leaves out stays. The document has the next version, and is in the cloud; each event stream
// hears of it (VEC-JDC-02, VEC-JDC-03, part of VEC-SET-01), also when another program, a file or the cloud changed it (VEC-JDS-09).
func TestSettings(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.dial(t)
	testwait.Until(t, patience, "the first push", testwait.Holds(func() bool { return d.shelf.get(jdocs.RobotSettings).Version == 1 }))
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	l.state(any1)
	_, _, body := d.post(t, "all", "/v1/update_settings", `{"settings":{"eye_color":"UNCANNY_YELLOW","clock_24_hour":true,"custom_eye_color":{"enabled":true,"hue":0.25}},"update_settings":true}`)
	var a struct {
		Status struct{ Code int }
		Code   int
		Doc    struct {
			Version string `json:"doc_version"`
			Format  string `json:"fmt_version"`
			JSON    string `json:"json_doc"`
		}
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.Status.Code != 1 || a.Code != 0 || a.Doc.Version != "2" || a.Doc.Format != "2" {
		t.Errorf("%s, %v", body, err)
	}
	l.changed(vectorpb.JdocType_ROBOT_SETTINGS)
	want := map[string]string{"eye_color": "2", "clock_24_hour": "true", "custom_eye_color": `{"enabled":true,"hue":0.25,"saturation":0}`, "locale": `"en-US"`}
	for _, text := range []string{a.Doc.JSON, d.shelf.get(jdocs.RobotSettings).JSON} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if !sameJSON(string(fields[name]), v) {
				t.Errorf("%s is %s, want %s", name, fields[name], v)
			}
		}
	}
	for _, wrong := range []string{`{"settings":{"eye_color":9}}`, `{"settings":{"time_zone":"nowhere at all"}}`, `{"settings":{"custom_eye_color":{"hue":1.5}}}`} {
		if got, _, body := d.post(t, "all", "/v1/update_settings", wrong); got != http.StatusBadRequest {
			t.Errorf("%s: %d %s", wrong, got, body)
		}
	}
	if _, err := c.UpdateSettings(as(t, "look"), &vectorpb.UpdateSettingsRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a token that may only look: %v", err)
	}
	if got, err := c.UpdateSettings(as(t, "all"), &vectorpb.UpdateSettingsRequest{}); err != nil || got.Doc.GetDocVersion() != 2 {
		t.Errorf("no settings: %v, %v", got, err)
	}
	if _, err := c.SetMasterVolume(as(t, "all"), &vectorpb.MasterVolumeRequest{VolumeLevel: vectorpb.MasterVolumeLevel_VOLUME_MEDIUM}); err != nil { // part of VEC-AUD-07
		t.Error(err)
	}
	l.changed(vectorpb.JdocType_ROBOT_SETTINGS)
	if got := d.setting(t, "master_volume"); got != "3" {
		t.Errorf("volume: %s", got)
	}
	if _, err := c.SetMasterVolume(as(t, "all"), &vectorpb.MasterVolumeRequest{VolumeLevel: 5}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("louder than HIGH: %v", err)
	}
	file := filepath.Join(d.dir, robotfs.Persistent, "jdocs/vic.RobotSettings.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(b), `"dist_is_metric": false`, `"dist_is_metric": true`, 1)
	if edited == string(b) {
		t.Fatalf("%s", b)
	}
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	l.changed(vectorpb.JdocType_ROBOT_SETTINGS)
	if got := d.setting(t, "dist_is_metric"); got != "true" {
		t.Errorf("metric: %s", got)
	}
	testwait.Until(t, patience, "the cloud's copy", testwait.Holds(func() bool { return strings.Contains(d.shelf.get(jdocs.RobotSettings).JSON, `"dist_is_metric":true`) }))
	d.shelf.mu.Lock()
	doc := d.shelf.docs[jdocs.RobotSettings]
	doc.Version, doc.JSON = doc.Version+1, strings.Replace(doc.JSON, `"eye_color":2`, `"eye_color":6`, 1)
	d.shelf.docs[jdocs.RobotSettings] = doc
	d.shelf.mu.Unlock()
	d.docs.Hint(map[string]uint64{string(jdocs.RobotSettings): doc.Version}) // as the owner's page makes the cloud do
	l.changed(vectorpb.JdocType_ROBOT_SETTINGS)
	if got := d.setting(t, "eye_color"); got != "6" {
		t.Errorf("eye color: %s", got)
	}
}

// setting pulls the robot's settings and returns one.
func (d *desk) setting(t *testing.T, name string) string {
	t.Helper()
	a, err := d.dial(t).PullJdocs(as(t, "look"), &vectorpb.PullJdocsRequest{JdocTypes: []vectorpb.JdocType{vectorpb.JdocType_ROBOT_SETTINGS}})
	if err != nil || len(a.NamedJdocs) != 1 {
		t.Fatalf("%v, %v", a, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.NamedJdocs[0].Doc.JsonDoc), &fields); err != nil {
		t.Fatal(err)
	}
	return string(fields[name])
}

// TestPullJdocs: each document that is asked for comes once, of the published number (VEC-JDC-01); the owner's are in the cloud, and event streams hear of their
// changes. Account settings decide what may leave the robot by way of the cloud's word (part of VEC-SET-03); an entitlement is stored (VEC-FEA-03).
func TestPullJdocs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.dial(t)
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	l.state(any1)
	if a, err := c.UpdateAccountSettings(as(t, "all"), &vectorpb.UpdateAccountSettingsRequest{AccountSettings: &vectorpb.AccountSettingsConfig{DataCollection: new(bool)}}); err != nil ||
		a.Code != vectorpb.ResultCode_SETTINGS_ACCEPTED || a.Doc.DocVersion != 1 || a.Doc.JsonDoc != `{"data_collection":false}` {
		t.Errorf("%v, %v", a, err)
	}
	l.changed(vectorpb.JdocType_ACCOUNT_SETTINGS)
	if _, _, body := d.post(t, "all", "/v1/update_user_entitlements", `{"user_entitlements":{"kickstarter_eyes":true}}`); !sameJSON(body,
		`{"status":{"code":1},"code":0,"doc":{"doc_version":"1","fmt_version":"1","client_metadata":"","json_doc":"{\"kickstarter_eyes\":true}"}}`) {
		t.Error(body)
	}
	l.changed(vectorpb.JdocType_USER_ENTITLEMENTS)
	a, err := c.PullJdocs(as(t, "look"), &vectorpb.PullJdocsRequest{JdocTypes: []vectorpb.JdocType{3, 2, 1, 0, 3}})
	if err != nil || len(a.NamedJdocs) != 4 {
		t.Fatalf("%v, %v", a, err)
	}
	for i, has := range []string{"kickstarter_eyes", "data_collection", "Alive.seconds", "eye_color"} {
		if n := a.NamedJdocs[i]; int(n.JdocType) != 3-i || !strings.Contains(n.Doc.JsonDoc, has) {
			t.Errorf("document %d: %v, want one with %s", i, n, has)
		}
	}
	if _, err := c.PullJdocs(as(t, "look"), &vectorpb.PullJdocsRequest{JdocTypes: []vectorpb.JdocType{4}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("type 4: %v", err)
	}
	d.sdk.Consented(host.Consent{Owned: true})
	d.sdk.Consented(host.Consent{Owned: true, DataCollection: true}) // by the owner's page
	l.changed(vectorpb.JdocType_ACCOUNT_SETTINGS)
	d.docs.Disconnected()
	if _, err := c.PullJdocs(as(t, "look"), &vectorpb.PullJdocsRequest{JdocTypes: []vectorpb.JdocType{2}}); status.Code(err) != codes.Unavailable {
		t.Errorf("without a cloud: %v", err)
	}
	if got := d.setting(t, "eye_color"); got != "0" {
		t.Errorf("settings without a cloud: %s", got)
	}
}

// TestOneUpdateAtATime: an update beside one that is under way is refused, and the first completes (VEC-SET-02, VEC-DOC-14).
func TestOneUpdateAtATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.shelf.mu.Lock()
	d.shelf.wait = make(chan struct{})
	d.shelf.mu.Unlock()
	update := func() (*vectorpb.UpdateAccountSettingsResponse, error) {
		locale := "de-DE"
		return d.dial(t).UpdateAccountSettings(as(t, "all"), &vectorpb.UpdateAccountSettingsRequest{AccountSettings: &vectorpb.AccountSettingsConfig{AppLocale: &locale}})
	}
	first := make(chan error, 1)
	go func() {
		a, err := update()
		if err == nil && (a.Code != vectorpb.ResultCode_SETTINGS_ACCEPTED || a.Doc.JsonDoc != `{"app_locale":"de-DE"}`) {
			t.Errorf("the first: %v", a)
		}
		first <- err
	}()
	<-d.shelf.busy
	if a, err := update(); err != nil || a.Code != vectorpb.ResultCode_ERROR_UPDATE_IN_PROGRESS || a.Doc.DocVersion != 0 {
		t.Errorf("the second: %v, %v", a, err)
	}
	close(d.shelf.wait)
	if err := testwait.For(t, first, "the first update"); err != nil {
		t.Error(err)
	}
}
