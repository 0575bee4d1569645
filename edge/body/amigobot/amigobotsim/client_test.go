package amigobotsim

import (
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/session"
	"kennel/edge/body/amigobot/sip"
)

// TestOurClient: a session drives the robot through resets, power cuts and a bad link. Whatever happens, motors are off until the client asks for
// them again, and the client finds back by itself (AMIGO-SYNC-11, AMIGO-SYNC-19, AMIGO-LINK-06, AMIGO-SIM-01).
func TestOurClient(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := newClient(t, Config{Seed: seed})
		s := session.New(session.Config{})
		s.Open()
		line := NewStepped(c.r)
		in := make([]byte, 4096)
		asked, drives, ready := false, 0, 0
		pass := func(d time.Duration) {
			for end := line.Now() + d; line.Now() < end; {
				line.SleepUntil(line.Now() + cycle)
				n, _ := line.Read(in) // it never fails
				_, _ = line.Write(s.Step(line.Now(), in[:n]))
				if st := c.r.State(); st.Motors && !asked {
					t.Fatalf("seed %d: the motors are on, unasked: %+v", seed, st)
				} else if st.Speed[0] > 0.1 {
					drives++
				}
				if s.State().Phase == session.Lost {
					s.Open()
				}
			}
		}
		for range 40 {
			c.r.SetFaults(Faults{})
			pass(20 * time.Second)
			if s.State().Phase != session.Ready {
				t.Fatalf("seed %d: after 20 s of peace the client is %v: %v", seed, s.State().Phase, s.State().Err)
			}
			ready++
			if err := s.Enable(true); err != nil {
				t.Fatal(err)
			}
			asked = true
			pass(time.Second)
			s.Velocity(0.2, 0)
			switch rng.IntN(4) {
			case 0:
				c.r.SetFaults(Faults{Loss: 0.3 * rng.Float64(), Delay: time.Duration(rng.IntN(50)) * time.Millisecond})
				pass(5 * time.Second)
				s.Stop()
				_ = s.Enable(false) // a lossy link may have made it stale, which stops the robot as well
				pass(5 * time.Second)
			case 1:
				pass(time.Duration(rng.IntN(3000)) * time.Millisecond)
				asked = false
				c.r.BrownOut()
			case 2:
				pass(time.Second)
				asked = false
				c.r.SetPower(false)
				pass(time.Duration(rng.IntN(20000)) * time.Millisecond)
				c.r.SetPower(true)
			case 3:
				pass(2 * time.Second)
				s.Close()
				pass(time.Second)
				asked = false
				s.Open()
			}
		}
		if drives < 1000 {
			t.Errorf("seed %d: it drove in %d cycles only", seed, drives)
		}
	}
}

// TestParameters: each parameter of the FLASH that a session shows counts after a reset (AMIGO-FLASH-01 to 38, AMIGO-CFG).
func TestParameters(t *testing.T) {
	c := newClient(t, Config{})
	for k, field := range map[flash.Key]func(*sip.Config) any{
		flash.Name:       func(f *sip.Config) any { return f.Name },
		flash.SInfoCycle: func(f *sip.Config) any { return int(f.InfoCycle) }, flash.HostBaud: func(f *sip.Config) any { return int(f.HostBaud) },
		flash.Aux1Baud: func(f *sip.Config) any { return int(f.Aux1Baud) }, flash.LowBattery: func(f *sip.Config) any { return int(f.LowBattery) },
		flash.WatchDog: func(f *sip.Config) any { return int(f.WatchDog) }, flash.RevCount: func(f *sip.Config) any { return int(f.RevCount) },
		flash.Mpacs: func(f *sip.Config) any { return int(f.P2Mpacs) }, flash.StallVal: func(f *sip.Config) any { return int(f.StallVal) },
		flash.StallCount: func(f *sip.Config) any { return int(f.StallCount) }, flash.RotVelMax: func(f *sip.Config) any { return int(f.RotVelMax) },
		flash.TransVelMax: func(f *sip.Config) any { return int(f.TransVelMax) }, flash.RotAcc: func(f *sip.Config) any { return int(f.RotAcc) },
		flash.RotDecel: func(f *sip.Config) any { return int(f.RotDecel) }, flash.RotKp: func(f *sip.Config) any { return int(f.RotKp) },
		flash.RotKv: func(f *sip.Config) any { return int(f.RotKv) }, flash.RotKi: func(f *sip.Config) any { return int(f.RotKi) },
		flash.TransAcc: func(f *sip.Config) any { return int(f.TransAcc) }, flash.TransDecel: func(f *sip.Config) any { return int(f.TransDecel) },
		flash.TransKp: func(f *sip.Config) any { return int(f.TransKp) }, flash.TransKv: func(f *sip.Config) any { return int(f.TransKv) },
		flash.TransKi: func(f *sip.Config) any { return int(f.TransKi) },
	} {
		values := &c.r.cfg.Memory.Params
		var want any = "Rover"
		text := "Rover"
		if k.Param().Kind != flash.Text {
			text = "1"
			want = 1
		}
		if err := values.Set(k.String(), text); err != nil {
			t.Fatal(err)
		}
		c.r.BrownOut()
		c.connect()
		c.take(0)
		c.send(sip.Int(sip.GetConfig, 0))
		var f sip.Config
		if all := c.take(sip.TypeConfig); len(all) != 1 || f.Parse(all[0]) != nil || field(&f) != want {
			t.Errorf("%s %s: CONFIGpac has %v", k, text, field(&f))
		}
		*values = flash.Defaults()
	}
}
