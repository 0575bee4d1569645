package vectordriver

import (
	"math"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
)

func newConverter() *converter { return &converter{cal: DefaultCalibration()} }

// frame returns the n-th frame of a quiet body.
func frame(n uint32) *spine.BodyData {
	return &spine.BodyData{Seq: n, Status: spine.SensorsPowered, Touch: 500, BatteryRaw: 2926}
}

func TestBatteryVectors(t *testing.T) {
	for _, c := range []struct {
		counts int16
		volts  float64
	}{{2999, 4.1}, {2926, 4.0}, {2633, 3.6}, {0, 0}} { // VEC-BODY-22, rounded there
		conv, m := newConverter(), frame(1)
		m.BatteryRaw = c.counts
		conv.take(m, time.Second)
		if got := conv.sense.BatteryVolts; math.Abs(got-c.volts) > conv.cal.VoltsPerCount/2 {
			t.Errorf("%d counts = %.4f V, want %.1f V within half a count", c.counts, got, c.volts)
		}
	}
}

func TestSelfTestFaults(t *testing.T) {
	for _, c := range []struct {
		device, item uint8
		want         uint16
	}{
		{0, 0, 0}, {0, 3, 0}, {0x52, 0, 894}, {0x52, 9, 894},
		{0xa6, 0, 891}, {0xa6, 1, 890}, {0xa6, 2, 893}, {0xa6, 3, 892}, // part of VEC-BODY-18: not in order
		{0xa6, 4, 0}, {0x11, 0, 0},
	} {
		conv, m := newConverter(), frame(1)
		m.FaultDevice, m.FaultItem = c.device, c.item
		conv.take(m, time.Second)
		if got := conv.sense.Fault; got != c.want {
			t.Errorf("device %#x item %d: fault %d, want %d", c.device, c.item, got, c.want)
		}
	}
}

func TestPowerFlagsAndRobotStatus(t *testing.T) {
	for _, c := range []struct {
		name   string
		power  spine.Power
		status spine.Status
		button uint16
		want   body.Power
		bits   uint32
	}{
		{"nothing", 0, spine.SensorsPowered, 0, 0, 0},
		{"pads", 1, spine.SensorsPowered, 0, body.OnCharger, 0x1000},
		{"charging", 2, spine.SensorsPowered, 0, body.Charging, 0x2000},
		{"disconnected", 4, spine.SensorsPowered, 0, body.BatteryDisconnected, 0x800},
		{"overheated", 8, spine.SensorsPowered, 0, body.Overheated, 0x40000},
		{"reserved", 16, spine.SensorsPowered, 0, 0, 0},
		{"below critical", 32, spine.SensorsPowered, 0, body.BelowCritical, 0x1000000},
		{"shutdown", 64, spine.SensorsPowered, 0, body.ShutdownImminent, 0x2000000},
		{"sensors off", 0, 0, 0, body.SensorsOff, 0},
		{"encoders off", 0, 0b0011, 0, body.EncodersOff, 0x100000},
		{"head moved unseen", 0, 0b0111, 0, body.EncodersOff, 0x300000},
		{"lift moved unseen", 0, 0b1011, 0, body.EncodersOff, 0x500000},
		{"head and lift moved, seen", 0, 0b1101, 0, 0, 0},
		{"button", 0, spine.SensorsPowered, 1, 0, 0x10},
		{"all", 0xffff, 0b1111, 0xffff, body.OnCharger | body.Charging | body.BatteryDisconnected | body.Overheated |
			body.BelowCritical | body.ShutdownImminent | body.EncodersOff, 0x3743810},
	} {
		conv, m := newConverter(), frame(1)
		m.Power, m.Status, m.Button = c.power, c.status, c.button
		conv.take(m, time.Second)
		if got := conv.sense.Power; got != c.want {
			t.Errorf("%s: power %b, want %b", c.name, got, c.want)
		}
		if got := RobotStatus(&conv.sense); got != c.bits {
			t.Errorf("%s: RobotStatus %#x, want %#x", c.name, got, c.bits)
		}
	}
}

func TestSpeedCountsTheFramesThatWereMissed(t *testing.T) {
	conv := newConverter()
	perFrame := 1 / conv.cal.CountsPerRad[spine.Head] / Period.Seconds() // rad/s of one count a frame
	for _, c := range []struct {
		seq   uint32
		count int32
		want  float64
		epoch uint32
	}{
		{math.MaxUint32 - 3, 1000, 0, 0}, // the first one has nothing to compare with
		{math.MaxUint32 - 2, 1010, 10 * perFrame, 0},
		{2, 1030, 4 * perFrame, 0}, // four lost, across the end of the counter: 5 frames, 20 counts
		{2, 1030, 0, 0},            // a body whose counter has stopped
		{3, 1020, -10 * perFrame, 0},
		{1, 5, 0, 1}, // it restarted
		{2, 6, perFrame, 1},
	} {
		m := frame(c.seq)
		m.Motors[spine.Head].Position = c.count
		conv.take(m, time.Second)
		s := &conv.sense
		if got := s.Motors[spine.Head].Speed; math.Abs(got-c.want) > 1e-9 || s.Epoch != c.epoch {
			t.Errorf("frame %d at count %d: speed %v epoch %d, want %v and %d", c.seq, c.count, got, s.Epoch, c.want, c.epoch)
		}
		if got, want := s.Motors[spine.Head].Position, float64(c.count)/500; got != want {
			t.Errorf("frame %d: position %v, want %v", c.seq, got, want)
		}
	}
}

// TestOnlyNewDistancesCount: VEC-BODY-26: those outside the sensor's range are counted, and left to the senses (VEC-IO-24).
func TestOnlyNewDistancesCount(t *testing.T) {
	for _, swap := range []bool{false, true} {
		conv := newConverter()
		conv.cal.ProxSwap = swap
		var refused uint64
		for i, c := range []struct {
			samples, mm uint16
			sensors     spine.Status
			at          time.Duration // of the distance then known
			metres      float64
			refused     uint64
		}{
			{7, 400, spine.SensorsPowered, 0, 0, 0}, // may be old
			{7, 410, spine.SensorsPowered, 0, 0, 0}, // no new sample
			{8, 420, spine.SensorsPowered, 3, 0.42, 0},
			{9, 29, spine.SensorsPowered, 4, 0.029, 1},
			{10, 1201, spine.SensorsPowered, 5, 1.201, 2},
			{11, 30, spine.SensorsPowered, 6, 0.03, 2},
			{12, 1200, spine.SensorsPowered, 7, 1.2, 2},
			{13, 500, 0, 7, 1.2, 2}, // without power
		} {
			m := frame(uint32(i + 1))
			m.Status, m.ProxSamples, m.ProxRange, m.ProxSignal, m.ProxAmbient = c.sensors, c.samples, c.mm, 1280, 64
			if swap {
				m.ProxSamples, m.ProxRange, m.ProxSignal, m.ProxAmbient = c.samples<<8|c.samples>>8, c.mm<<8|c.mm>>8, 5, 0x4000
			}
			conv.take(m, time.Duration(i+1))
			s := &conv.sense
			refused = conv.proxRefused
			if rates := [2]float64{s.ProxSignal, s.ProxAmbient}; s.ProxAt > 0 && rates != [2]float64{10, 0.5} {
				t.Errorf("swap %t, frame %d: rates %v, want 10 and 0.5", swap, i+1, rates)
			}
			if s.ProxAt != c.at || s.ProxMetres != c.metres || refused != c.refused {
				t.Errorf("swap %t, frame %d: %v m at %v, %d refused; want %v at %v, %d", swap, i+1, s.ProxMetres, s.ProxAt, refused, c.metres, c.at, c.refused)
			}
		}
	}
}

func TestCliffsKeepTheirValuesWithoutPower(t *testing.T) {
	conv, m := newConverter(), frame(1)
	m.Cliffs = [4]uint16{0, 512, 1024, 65535}
	conv.take(m, 1)
	want := [4]float64{0, 0.5, 1, 1}
	if got := [4]float64(conv.sense.Cliffs[:4]); got != want {
		t.Errorf("cliffs %v, want %v", got, want)
	}
	m = frame(2)
	m.Status = 0
	conv.take(m, 2)
	if got := [4]float64(conv.sense.Cliffs[:4]); got != want {
		t.Errorf("cliffs without power %v, want them as they were, %v", got, want)
	}
}

func TestDuty(t *testing.T) {
	for _, c := range []struct {
		v, limit float64
		want     int16
	}{
		{0, 1, 0}, {1, 1, 32767}, {-1, 1, -32767}, {0.5, 1, 16384}, {2, 1, 32767}, {-2, 0.5, -16384}, {1, 0, 0},
		{math.NaN(), 1, 0}, {math.Inf(1), 1, 32767}, {math.Inf(-1), 1, -32767},
	} {
		if got := duty(c.v, c.limit); got != c.want {
			t.Errorf("duty(%v, %v) = %d, want %d", c.v, c.limit, got, c.want)
		}
	}
}

func TestConversionAllocatesNothing(t *testing.T) {
	conv, m := newConverter(), frame(1)
	var command spine.HeadData
	var act Act
	if n := testing.AllocsPerRun(100, func() {
		m.Seq++
		conv.take(m, time.Second)
		conv.fill(&command, &act)
	}); n != 0 {
		t.Errorf("a conversion allocates %v times, want 0", n)
	}
}

func TestCalibrationValidate(t *testing.T) {
	good := DefaultCalibration()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(c *Calibration){
		"VoltsPerCount":           func(c *Calibration) { c.VoltsPerCount = 0 },
		"CountsPerRad of arm":     func(c *Calibration) { c.CountsPerRad[2] = math.NaN() },
		"MaxDuty of head":         func(c *Calibration) { c.MaxDuty[3] = 1.1 },
		"LightOrder of led[1]":    func(c *Calibration) { c.LightOrder[1] = 4 },
		"ProxMin":                 func(c *Calibration) { c.ProxMin = 2 },
		"ProxRate":                func(c *Calibration) { c.ProxRate = 0 },
		"TouchMin":                func(c *Calibration) { c.TouchMin = 5000 },
		"TrackWidth":              func(c *Calibration) { c.TrackWidth = math.Inf(1) },
		"LostAfter":               func(c *Calibration) { c.LostAfter = 0 },
		"CliffFullScale is -1":    func(c *Calibration) { c.CliffFullScale = -1 },
		"WheelRadius is 0, want ": func(c *Calibration) { c.WheelRadius = 0 },
	} {
		c := DefaultCalibration()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("spoilt %s: %v", name, err)
		}
	}
}

// TestControlWord: unverified bits switch nothing off (VEC-BODY-32).
func TestControlWord(t *testing.T) {
	known := DefaultCalibration()
	known.Control, known.ChargerOff, known.SensorsOff = 0x100, SimChargerOff, SimSensorsOff
	for _, tc := range []struct {
		cal  Calibration
		off  PowerParts
		want uint32
	}{
		{DefaultCalibration(), ChargerPart | SensorsPart, 0},
		{known, 0, 0x100}, {known, ChargerPart, 0x101}, {known, SensorsPart, 0x102}, {known, ChargerPart | SensorsPart, 0x103},
	} {
		c := converter{cal: tc.cal}
		var m spine.HeadData
		if c.fill(&m, &Act{Off: tc.off}); m.Control != tc.want {
			t.Errorf("control word %#x, want %#x", m.Control, tc.want)
		}
	}
}
