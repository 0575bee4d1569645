package amigobot_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/amigobotsim"
)

// cable is a line that loses so many of the first CLOSE commands.
type cable struct {
	*amigobotsim.Stepped
	loses int
}

func (c *cable) Write(b []byte) (int, error) {
	if c.loses > 0 && bytes.HasPrefix(b, []byte("\xfa\xfb\x06\x02")) {
		c.loses--
		return len(b), nil
	}
	return c.Stepped.Write(b)
}

// TestKilledClient: behind a cable, a robot continues for a client that was killed until its watchdog stops it. The next client makes it stop
// before it says anything that the robot takes for a PULSE, also when the line loses commands (AMIGO-SYNC-09, AMIGO-SAFE-02).
func TestKilledClient(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		loses int
		stops time.Duration // at most, once the next client listens
	}{
		{"0.6 s later", 600 * ms, 0, 150 * ms},
		{"0.6 s later, CLOSE is lost", 600 * ms, 2, 800 * ms},
		{"after the watchdog", 3 * time.Second, 0, 0},
		{"after the watchdog, CLOSE is lost", 3 * time.Second, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := amigobotsim.New(amigobotsim.Config{})
			if err != nil {
				t.Fatal(err)
			}
			line := &cable{Stepped: amigobotsim.NewStepped(r)}
			var driven time.Duration // newest time at which it drove
			pass := line.Period
			line.Period = func() {
				if pass(); math.Abs(r.State().Speed[0]) > 0.03 {
					driven = line.Time
				}
			}
			first, err := amigobot.Open(t.Context(), amigobot.Config{Port: line})
			if err != nil {
				t.Fatal(err)
			}
			var s body.Sense
			for until := line.Now() + 2*time.Second; line.Now() < until; {
				var a body.Act
				a.Set(0, body.Level, 1) // motors
				a.Set(1, body.Speed, 0.3)
				if err := first.Write(&a); err != nil {
					t.Fatal(err)
				}
				_ = first.Read(&s, line.Now()+20*ms) // in most of them no packet comes
			}
			if v := r.State().Speed[0]; v < 0.25 {
				t.Fatalf("it drives at %.3f m/s, want 0.3", v)
			}
			line.SleepUntil(line.Now() + tt.after)
			line.loses, line.Out = tt.loses, nil
			next := line.Now()
			if _, err := amigobot.Open(t.Context(), amigobot.Config{Port: line}); err != nil {
				t.Fatal(err)
			}
			if s := r.State(); s.Motors || driven > next+tt.stops+200*ms { // to brake
				t.Errorf("it drove until %v after the next client, want %v; motors %v", driven-next, tt.stops, s.Motors)
			}
			if tt.stops == 0 && driven > next {
				t.Errorf("the watchdog had stopped it, and it drove again until %v after the next client", driven-next)
			}
		})
	}
}
