package voice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/edge/agent/voice"
)

// TestOnlyTheBroker: a robot whose connections to the HTTPS port all end hears a recording after a press of its button, and does what it means: the whole
// sentence goes over MQTT, with the events of VEC-INT-12 in their order (issue 19, build 3).
func TestOnlyTheBroker(t *testing.T) {
	h := housetest.New(t, "-robots", "0", "-recognizers", "sphinx")
	h.Start()
	r := h.WiredRobot(t, "vic:00e20f00")
	h.AwaitPresent(1)
	speechTries(h, recording(t, "turn around"))
	r.API.Cut()
	l := listens(h, r.Root)
	all, took := hearsText(h, l, r.Root, "turn around")
	var order []string
	for _, e := range all {
		word, _, _ := strings.Cut(e.Words(), " intent_heard")
		order = append(order, word)
	}
	const want = "WakeWordBegin; StimulationInfo ReactToTriggerWord; WakeWordEnd; result"
	if got := strings.Join(order, "; "); !strings.HasPrefix(got, want) || len(all) != 4 || took > voice.Deadline {
		t.Fatalf("after %v: %s, want %s", took, inWords(all), want)
	}
	if end := all[2].WakeWord.End; !end.Heard || !strings.Contains(end.JSON, `"movement_turnaround"`) {
		t.Errorf("%s, want the intent movement_turnaround", inWords(all))
	}
	t.Logf("from the end of speech to the intent in the robot: %v", took.Round(time.Millisecond))
}

// TestTimerOutlivesKills: a timer rings once and on time although its agent was killed as soon as it had answered, and as soon as it runs again if the agent
// could not run when it was due; the event says how late that is.
func TestTimerOutlivesKills(t *testing.T) {
	h := housetest.New(t, "-robots", "1", "-robot-env", "KENNEL_FLUSH_MS=200", "-robot-env", "KENNEL_FAULT_RESTART_LIMIT=1000")
	h.Start()
	id := h.AwaitPresent(1)[0]
	root := h.RobotRoot(id)
	ann := h.Owner(t, "ann@example.org", "Ann")
	ann.Do("POST", "/v1/my/robots/claim", map[string]string{"code": housetest.ShownCode(t, root)}, nil)
	ann.Do("PATCH", "/v1/things/"+id+"/jdocs/vic.AccountSettings", map[string]any{"set": map[string]bool{"data_collection": true}}, nil)
	set := func(seconds string) {
		t.Helper()
		s := tells(ann, id, map[string]any{"intent": "set_timer", "params": map[string]string{"timer_duration": seconds}})
		if s.Command.State != "done" {
			t.Fatalf("set a timer: %+v, %+v", s, s.Command.Result)
		}
	}
	signal := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(housetest.RobotPids(root)["agentd"], sig); err != nil {
			t.Fatal(err)
		}
	}
	type ring struct {
		S1     string
		I1, I2 *int64 // the length and how late, in s
	}
	rings := func(n int) (all []ring) {
		t.Helper()
		housetest.Await(t, time.Minute, fmt.Sprintf("%d rings", n), func() error {
			var events []ring
			if err := h.CtlJSON(&events, "events", "list", "-thing", id, "-event", "robot.timer"); err != nil {
				return err
			}
			all = nil
			for _, e := range events {
				if strings.HasPrefix(e.S1, "rang") && e.I1 != nil && e.I2 != nil {
					all = append(all, e)
				}
			}
			if len(all) < n {
				return fmt.Errorf("%+v", events)
			}
			return nil
		})
		return all
	}
	began := time.Now()
	set("5")
	old := housetest.RobotPids(root)["agentd"]
	signal(syscall.SIGKILL)
	housetest.Await(t, time.Minute, "another agentd", func() error {
		if now := housetest.RobotPids(root)["agentd"]; now == 0 || now == old {
			return errors.New("none yet")
		}
		return nil
	})
	if all := rings(1); *all[0].I1 != 5 || *all[0].I2 > 5 || time.Since(began) < 5*time.Second {
		t.Errorf("after %v: %+v; want a ring after 5 s", time.Since(began), all)
	}
	h.AwaitPresent(1)
	late, n := 2, 2
	for ; ; late, n = 2*late, n+1 { // until it is stopped in time
		asked := time.Now()
		set(strconv.Itoa(late))
		due := time.After(time.Duration(late+1) * time.Second)
		if signal(syscall.SIGSTOP); time.Since(asked) < time.Duration(late)*time.Second {
			<-due
			break
		}
		signal(syscall.SIGCONT)
		rings(n)
	}
	signal(syscall.SIGKILL)
	for _, e := range rings(n) {
		if *e.I1 == int64(late) && (*e.I2 < 1 || e.S1 != "rang") {
			t.Errorf("%+v; want a ring at least a second late", e)
		}
	}
	h.AwaitPresent(1)
	set("1")
	lengths := map[int64]int{}
	for _, e := range rings(n + 1) {
		if lengths[*e.I1]++; lengths[*e.I1] > 1 {
			t.Errorf("the timer of %d s rang again: %+v", *e.I1, e)
		}
	}
}
