package hawkbit

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kennel/infra/api/status"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// feedbacks are bodies as clients send them: SWUpdate 2022.12 (captured), rauc-hawkbit-updater and the examples of hawkBit's own description.
var feedbacks = []struct {
	name, body string
	state      State
	phase      ota.Phase
	words      string
}{
	{"SWUpdate begins", `{ "id": 2, "time": "20261123T044808", "status": { "result": { "progress": { "cnt" : 0, "of" : 1 }, "finished": "none" }, "execution": "proceeding", "details" : [ "Installing Update Chunk Artifacts." ] } }`,
		Working, ota.Downloading, "Installing Update Chunk Artifacts."},
	{"SWUpdate's log", `{ "id": 2, "time": "20261123T044808", "status": { "result": { "progress": { "cnt" : 1, "of" : 0 }, "finished": "none" }, "execution": "proceeding", "details" : [ "a","ERROR b" ] } }`,
		Working, ota.Downloading, "a; ERROR b"},
	{"SWUpdate has installed", `{ "id": 1, "time": "20261123T044426", "status": { "result": { "progress": { "cnt" : 1, "of" : 1 }, "finished": "none" }, "execution": "proceeding", "details" : [ "All Chunks Installed." ] } }`,
		Installed, ota.Installed, "All Chunks Installed."},
	{"SWUpdate after its restart", `{ "id": 1, "time": "20261123T044428", "status": { "result": { "progress": { "cnt" : 0, "of" : 0 }, "finished": "success" }, "execution": "closed", "details" : [ "Update Installed." ] } }`,
		Done, ota.Current, "Update Installed."},
	{"SWUpdate fails", `{ "id": 2, "time": "20261123T044809", "status": { "result": { "progress": { "cnt" : 0, "of" : 1 }, "finished": "failure" }, "execution": "closed", "details" : [ "No suitable .swu image found" ] } }`,
		Failed, ota.Failed, "No suitable .swu image found"},
	{"SWUpdate's quotes", "{ \"id\": 2, \"status\": { \"result\": { \"progress\": { \"cnt\" : 0, \"of\" : 1 }, \"finished\": \"failure\" }, \"execution\": \"closed\", \"details\" : [ \"ERROR : no room for \"it\"\",\"gone\n\" ] } }",
		Failed, ota.Failed, `ERROR : no room for "it"; gone`},
	{"what a detail says is no state", `{ "status": { "result": { "finished": "none" }, "execution": "proceeding", "details" : [ "a "b" "finished": "failure" }, "execution": "closed", "details" : [ " ] } }`,
		Working, ota.Downloading, ""},
	{"SWUpdate stops", `{ "id": 3, "time": "20261123T044430", "status": { "result": { "finished": "success" }, "execution": "closed", "details" : [ "cancellation acknowledged." ] } }`,
		Done, ota.Current, "cancellation acknowledged."},
	{"hawkBit's example", `{"time":"20140511T121314","status":{"execution":"closed","result":{"finished":"failure"},"code":204,"details":["The update failed"]}}`, Failed, ota.Failed, "The update failed"},
	{"downloaded", `{"status":{"execution":"downloaded","result":{"finished":"none","progress":{"cnt":2,"of":2}},"details":[]}}`, Working, ota.Downloading, ""},
	{"scheduled", `{"status":{"execution":"scheduled","result":{"finished":"none"}}}`, None, "", ""},
	{"cancelled", `{"status":{"execution":"canceled","result":{"finished":"none"}}}`, Cancelled, ota.Pending, ""},
	{"rejected", `{"status":{"execution":"rejected","result":{"finished":"none"}}}`, None, "", ""},
}

func TestFeedback(t *testing.T) {
	for _, tt := range feedbacks {
		f, err := ParseFeedback([]byte(tt.body))
		state, phase := f.meaning()
		if err != nil || state != tt.state || phase != tt.phase || tt.words != "" && join(f.Details, 1000) != tt.words {
			t.Errorf("%s: %+v, %v: %s, %s", tt.name, f, err, state, phase)
		}
	}
	for body, want := range map[string]string{
		``:                                "feedback",
		`{}`:                              "want one of closed",
		`[]`:                              "feedback",
		`{"status":{"execution":"done"}}`: `"done"`,
		`{"status":{"execution":"closed","result":{"finished":"maybe"}}}`:                                      "want success",
		`{"status":{"execution":7}}`:                                                                           "feedback",
		`{"details":["finished":"failure","execution":"closed","details":[`:                                    "feedback",
		`{"status":{"execution":"closed","result":{"finished":"failure"},"code":1e99,"details":["x"]}}`:        "feedback",
		`{"status":{"result":{"finished":"success"},"execution":"closed","details":[` + strings.Repeat("[", 9): "",
	} {
		if _, err := ParseFeedback([]byte(body)); want != "" && (errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if got := join([]string{"a", "", " a ", strings.Repeat("é", 600)}, 100); len(got) > 100 || !strings.HasPrefix(got, "a; é") {
		t.Errorf("%q", got)
	}
}

// FuzzFeedback: whatever a device sends, what is taken of it is one of the words of the API.
func FuzzFeedback(f *testing.F) {
	for _, tt := range feedbacks {
		f.Add([]byte(tt.body))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseFeedback(b)
		if state, phase := got.meaning(); err == nil && (state == "") != (phase == "") {
			t.Errorf("%q is %q in phase %q", b, state, phase)
		}
	})
}

// TestFollow: every state of an action meets every wish.
func TestFollow(t *testing.T) {
	const same, other, none, runs = "same", "other", "none", "runs"
	want := map[State]map[string]string{ // the state after, with + where the action is another one
		None:      {same: "offered+", other: "offered+", none: "", runs: ""},
		Offered:   {same: "offered", other: "offered+", none: "", runs: ""},
		Fetched:   {same: "fetched", other: "cancel", none: "cancel", runs: "fetched"},
		Working:   {same: "working", other: "cancel", none: "cancel", runs: "working"},
		Installed: {same: "installed", other: "cancel", none: "cancel", runs: "installed"},
		Cancel:    {same: "cancel", other: "cancel", none: "cancel", runs: "cancel"},
		Kept:      {same: "kept", other: "kept", none: "kept", runs: "kept"},
		Done:      {same: "done", other: "offered+", none: "done", runs: "done"},
		Failed:    {same: "failed", other: "offered+", none: "failed", runs: "failed"},
		Cancelled: {same: "offered+", other: "offered+", none: "cancelled", runs: "cancelled"},
	}
	for state, by := range want {
		for wish, after := range by {
			d := Device{Action: 7, Release: "1.0.0.2", State: state, Running: "1.0.0.1"}
			w := ota.Desired{Release: "1.0.0.2"}
			switch wish {
			case other:
				w.Release = "1.0.0.3"
			case none:
				w.Release = ""
			case runs:
				d.Running = "1.0.0.2"
			}
			d.follow(w, true)
			got := string(d.State)
			if d.Action != 7 {
				got += "+"
			}
			if got != after {
				t.Errorf("%q, %s: %q, want %q", state, wish, got, after)
			}
			d = Device{Action: 7, Release: "1.0.0.2", State: state, Running: "1.0.0.1"}
			if d.follow(ota.Desired{Release: "1.0.0.2"}, false); d.Action != 7 {
				t.Errorf("%q is offered a release without a file", state)
			}
		}
	}
	d := Device{Action: 1 << 30}
	if d.follow(ota.Desired{Release: "1.0.0.2"}, true); d.Action != 1 {
		t.Errorf("after the largest number comes %d", d.Action)
	}
	for region, want := range map[string]string{"EU": "region-eu", " us-west.2 ": "region-us-west.2", "": "", "a b": ""} {
		if got := regionTag(region); got != want {
			t.Errorf("region %q: %q", region, got)
		}
	}
}

// one is the store of one device.
type one struct{ d Device }

func (o *one) Device(context.Context, thing.ID) (Device, error) { return o.d, nil }
func (o *one) Save(_ context.Context, d Device) (bool, error)   { o.d = d; return true, nil }
func (o *one) SetToken(context.Context, thing.ID, []byte) error { return nil }

// TestReportsNameTheWish: each report says which wish it is about, and what the next restart starts.
func TestReportsNameTheWish(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	const next = ota.Version("1.0.0.2")
	var got []ota.Status
	s := New(Config{Store: &one{Device{Thing: "vic:00e20100", Action: 7, Release: next, Since: since, State: Fetched, Running: "1.0.0.1"}},
		Report: func(_ context.Context, _ thing.ID, s ota.Status) error { got = append(got, s); return nil },
		Seen:   func(context.Context, thing.ID, status.Message) error { return nil }, Log: slog.New(slog.DiscardHandler)})
	for _, f := range []Feedback{{Execution: "proceeding"}, {Execution: "proceeding", Cnt: 1, Of: 1}, {Execution: "closed", Finished: "success"}} {
		if err := s.Feedback(t.Context(), "vic:00e20100", 7, f, "test"); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []ota.Version{"", next, ""} {
		if len(got) != 3 || !got[i].Since.Equal(since) || got[i].Next != want {
			t.Fatalf("report %d: %+v, want since %v and next %q", i, got, since, want)
		}
	}
}
