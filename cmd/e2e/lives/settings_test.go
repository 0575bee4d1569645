package lives

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestSettingsBothWays (issue: what must hold 3).
func TestSettingsBothWays(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	r := h.WiredRobot(t, "vic:00e20f00")
	h.AwaitPresent(1)
	h.CloudHas(r.Thing, "master_volume", 4) // born with the defaults (VEC-DOC-01)
	h.CloudHas(r.Thing, "eye_color", 0)

	// Connected: within a second, with a fivefold ceiling here.
	for _, v := range []int{1, 3} {
		h.Set(r.Thing, fmt.Sprintf("master_volume=%d", v))
		if took := housetest.FileHas(t, r.Root, "master_volume", v); took > 5*time.Second {
			t.Errorf("a setting took %v to the robot", took)
		} else {
			t.Logf("a setting took %v from the answer to kennelctl to the robot's file", took)
		}
	}

	t.Run("offline change arrives after reconnect", func(t *testing.T) {
		r.Cut()
		h.AwaitAbsent(r.Thing)
		housetest.EditSetting(t, r.Root, "clock_24_hour", true)
		r.Mend()
		h.CloudHas(r.Thing, "clock_24_hour", true)
	})
	t.Run("different fields on both sides both survive", func(t *testing.T) {
		r.Cut()
		h.AwaitAbsent(r.Thing)
		housetest.EditSetting(t, r.Root, "locale", "de-DE")
		h.Set(r.Thing, "time_zone=Europe/Berlin")
		r.Mend()
		h.CloudHas(r.Thing, "locale", "de-DE")
		h.CloudHas(r.Thing, "time_zone", "Europe/Berlin")
		housetest.FileHas(t, r.Root, "locale", "de-DE")
		housetest.FileHas(t, r.Root, "time_zone", "Europe/Berlin")
	})
	t.Run("same field: the later accepted change wins, the other stays in history (VEC-JDS-08)", func(t *testing.T) {
		r.Cut()
		h.AwaitAbsent(r.Thing)
		housetest.EditSetting(t, r.Root, "eye_color", 5)
		h.Set(r.Thing, "eye_color=2")
		r.Mend()
		h.CloudHas(r.Thing, "eye_color", 5)
		housetest.FileHas(t, r.Root, "eye_color", 5)
		out, err := h.Ctl("jdocs", "history", r.Thing, "vic.RobotSettings", "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var history []housetest.CloudDoc
		if err := json.Unmarshal(out, &history); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		found := false
		for i, e := range history {
			found = found || fmt.Sprint(e.Doc["eye_color"]) == "2"
			if i > 0 && history[i-1].Version <= e.Version {
				t.Errorf("versions %d, %d: want newest first, each once", history[i-1].Version, e.Version)
			}
		}
		if !found {
			t.Errorf("the losing change is not in history: %s", out)
		}
	})
}

// TestLargeDocument: 204,800 incompressible bytes pass both ways, although no broker message carries them.
func TestLargeDocument(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	r := h.WiredRobot(t, "vic:00e20d00")
	h.AwaitPresent(1)
	h.CloudHas(r.Thing, "master_volume", 4)
	l, err := housetest.ReadLocal(r.Root)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := json.Marshal(l.Jdoc)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 204_800)
	_, _ = rand.Read(raw)
	// Up to the very limit of a document (VEC-JDS-10), with the field's own name and quotes.
	blob := base64.RawStdEncoding.EncodeToString(raw)[:204_800-len(rest)-len(`,"blob":""`)]
	housetest.EditSetting(t, r.Root, "blob", blob)
	h.CloudHas(r.Thing, "blob", blob)
	h.Set(r.Thing, "master_volume=1") // the robot now has to read all of it
	housetest.FileHas(t, r.Root, "master_volume", 1)
	housetest.FileHas(t, r.Root, "blob", blob)

	housetest.EditSetting(t, r.Root, "blob", blob+"x") // one byte too many: refused with a reason that the robot tells, and nothing is lost
	housetest.Await(t, time.Minute, "the robot says why", func() error {
		out, err := h.Ctl("robots", "show", r.Thing, "-o", "json")
		if err != nil || !strings.Contains(string(out), "204800") {
			return fmt.Errorf("%w: %.2000s", err, out)
		}
		return nil
	})
	h.CloudHas(r.Thing, "blob", blob)
}
