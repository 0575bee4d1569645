package bridge

import (
	"slices"
	"testing"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/mqtt/brokeradmin/mosquitto/mosquittotest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
)

// provisioned returns an Admin of a Mosquitto that knows the robots of these tests.
func provisioned(t *testing.T, m *mosquittotest.Broker) *mosquitto.Admin {
	t.Helper()
	a := m.Admin(t, append(slices.Clone(countingRobots), rex, pip, ada)...)
	for deadline := time.Now().Add(long); a.Ready(t.Context()) != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("mosquitto does not become ready")
		}
	}
	if err := a.Provision(t.Context(), append(slices.Clone(countingRobots), rex, pip, ada)...); err != nil {
		t.Fatal(err)
	}
	return a
}

const ada thing.ID = "vic:00e20102" // comes late

// TestTrafficMosquitto: what goes through the embedded broker goes through a foreign one, and a hint that was retained reaches a robot that
// comes late.
func TestTrafficMosquitto(t *testing.T) {
	m := mosquittotest.Start(t)
	admin := provisioned(t, m)
	br := traffic(t, m.Things, m.Services, Handlers{})
	br.Hint(t.Context(), ada, topics.OTA, []byte("42"))
	late := newRobot(t, m.Things, ada)
	if got := testwait.For(t, late.down, "the retained hint"); got != (message{topics.OTA, "42"}) {
		t.Errorf("%v", got)
	}
	testwait.For(t, late.up, "connected")
	if err := admin.Kick(t.Context(), ada, "revoked"); err != nil {
		t.Error(err)
	}
	testwait.For(t, late.up, "back after the kick")
}

// TestMosquittoKilled is issue 3, "what must hold" 1, the broker's part: kill -9 five times while requests flow, everybody comes back, and
// every request is run once and answered.
func TestMosquittoKilled(t *testing.T) {
	m := mosquittotest.Start(t)
	provisioned(t, m)
	killed(t, m.Things, m.Services, func() { m.Kill(); m.Start(t) })
}
