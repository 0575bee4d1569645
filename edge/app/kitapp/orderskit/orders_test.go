package orderskit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"kennel/edge/app/kitapp"
	"kennel/infra/api/robotpb"
	"kennel/infra/cli"
	"kennel/infra/mcap"
	"kennel/sdk/sdktest"
)

// recorded is a recording of one order of a species.
func recorded(t *testing.T, species string, end *robotpb.Ended) string {
	t.Helper()
	var b bytes.Buffer
	w, err := mcap.NewWriter(&b, "test")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Metadata("kennel.robot", map[string]string{"thing": "vic:1", "species": species}) // Close has its error
	channel, err := w.Channel("/orders", 0, "protobuf", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*robotpb.OrderReport{
		{Order: 1, Program: "square", Steps: []*robotpb.Step{{Statements: []*robotpb.Statement{{Name: "headPitch", What: &robotpb.Statement_Set{Set: &robotpb.Value{Kind: &robotpb.Value_Number{Number: 0.5}}}}}}}},
		{Order: 1, Ended: end},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Message(mcap.Message{ChannelID: channel, Data: data})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.mcap")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestReplay: robotkit replay runs the orders of an MCAP file, and its exit code says whether they ended as recorded.
func TestReplay(t *testing.T) {
	robot := sdktest.Start(t, nil)
	same := recorded(t, "vector", &robotpb.Ended{Outcome: "done", Words: "done", Moved: 0.1, Unit: "m"})
	broken := filepath.Join(t.TempDir(), "broken.mcap")
	if err := os.WriteFile(broken, []byte("\x89MCAP1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file, robot string
		code        int
	}{
		"same":          {same, robot.File(t, nil), cli.ExitOK},
		"other end":     {recorded(t, "vector", &robotpb.Ended{Outcome: "blocked", Words: "blocked"}), robot.File(t, nil), cli.ExitFailed},
		"other species": {recorded(t, "amigobot", &robotpb.Ended{Outcome: "done"}), robot.File(t, nil), cli.ExitUsage},
		"other version": {broken, robot.File(t, nil), cli.ExitUsage},
		"no file":       {same, "", cli.ExitNotFound},
		"wrong token":   {same, robot.File(t, map[string]string{"token": "x"}), cli.ExitDenied},
		"nothing there": {same, robot.File(t, map[string]string{"address": "127.0.0.1:1"}), cli.ExitUnavailable},
	} {
		var out, errOut bytes.Buffer
		code := kitapp.Main([]string{"replay", tc.file, "-robot", tc.robot, "-o", "json"}, func(string) string { return "" }, &out, &errOut)
		if code != tc.code {
			t.Errorf("%s: %d, want %d: %s%s", name, code, tc.code, out.Bytes(), errOut.Bytes())
		}
		if tc.code > cli.ExitFailed {
			continue
		}
		var got struct {
			Thing, On string
			Differ    int
			Orders    []struct{ Order, Recorded, Replayed, Differs string }
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Thing != "vic:1" || got.On != "vic:00e20100" || len(got.Orders) != 1 || got.Orders[0].Order != "headPitch = 0.5" ||
			got.Orders[0].Replayed != "done" || (got.Differ == 0) != (code == 0) {
			t.Errorf("%s: %s, %v", name, out.Bytes(), err)
		}
	}
}
