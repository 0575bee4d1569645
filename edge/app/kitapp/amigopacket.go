package kitapp

import (
	"encoding/hex"
	"fmt"
	"strings"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
)

// packet is one packet of the robot as monitor prints it.
type packet struct {
	Seconds float64 `json:"seconds"` // since monitor began
	Packet  string  `json:"packet"`  // its kind
	Data    any     `json:"data,omitempty"`
	text    string
}

// In the data of packets all values are in SI units.
type (
	standardData struct {
		Moving     bool        `json:"moving"`
		X          float64     `json:"x_m"` // wraps at ±8.328 m
		Y          float64     `json:"y_m"`
		Heading    float64     `json:"heading_rad"`
		Left       float64     `json:"left_mps"`
		Right      float64     `json:"right_mps"`
		Battery    float64     `json:"battery_v"`
		StallLeft  bool        `json:"stall_left"`
		StallRight bool        `json:"stall_right"`
		Control    float64     `json:"control_rad"`
		Motors     bool        `json:"motors"`
		Sonar      bool        `json:"sonar"`
		Ranges     []sonarData `json:"ranges"`
		AnalogPort int         `json:"analog_port"`
		Analog     float64     `json:"analog_v"`
		DigitalIn  uint8       `json:"digital_in"`
		DigitalOut uint8       `json:"digital_out"`
	}
	sonarData struct {
		Sonar int     `json:"sonar"`
		Range float64 `json:"range_m"`
	}
	identityData struct {
		Name     string `json:"name"`
		Class    string `json:"class"`
		Subclass string `json:"subclass"`
	}
	encodersData struct {
		Left  float64 `json:"left_m"`
		Right float64 `json:"right_m"`
	}
	serialData struct {
		Port string `json:"port"`
		Hex  string `json:"hex"`
	}
	ioData struct {
		In     string    `json:"digital_in"` // hexadecimal
		Out    string    `json:"digital_out"`
		Analog []float64 `json:"analog_v"`
	}
	playlistData struct {
		Sound   int     `json:"sound"`
		On      bool    `json:"on"`
		Name    string  `json:"name"`
		Offset  uint32  `json:"offset"`
		Seconds float64 `json:"seconds"`
	}
	rawData struct {
		Hex string `json:"hex"`
	}
)

// readPacket describes the payload of a packet. One that is cut short, or of an unknown type, is shown in hexadecimal.
func readPacket(payload []byte) packet {
	switch payload[0] {
	case sip.Sync0, sip.Sync1:
		return packet{Packet: fmt.Sprintf("sync%d", payload[0])}
	case sip.TypeIdentity:
		if id := new(sip.Identity); id.Parse(payload) == nil {
			return packet{Packet: "identity", Data: identityData(*id), text: fmt.Sprintf("%s, %s %s", id.Name, id.Class, id.Subclass)}
		}
	case sip.TypeStopped, sip.TypeMoving:
		if s := new(sip.Standard); s.Parse(payload) == nil {
			return standardPacket(s)
		}
	case sip.TypeConfig:
		if c := new(sip.Config); c.Parse(payload) == nil {
			return packet{Packet: "config", Data: c, text: strings.Trim(fmt.Sprintf("%+v", *c), "{}")}
		}
	case sip.TypeEncoders:
		if e := new(sip.Encoders); e.Parse(payload) == nil {
			d := encodersData{float64(e.Left) / sip.TicksPerMetre, float64(e.Right) / sip.TicksPerMetre}
			return packet{Packet: "encoders", Data: d, text: fmt.Sprintf("left %.4f m, right %.4f m", d.Left, d.Right)}
		}
	case sip.TypeAux1, sip.TypeAux2:
		d := serialData{"AUX1", hex.EncodeToString(payload[1:])}
		if payload[0] == sip.TypeAux2 {
			d.Port = "AUX2"
		}
		return packet{Packet: "serial", Data: d, text: d.Port + " " + d.Hex}
	case sip.TypeIO:
		if x := new(sip.IO); x.Parse(payload) == nil {
			d := ioData{hex.EncodeToString(x.Digin), hex.EncodeToString(x.Digout), []float64{}}
			for _, v := range x.Analog {
				d.Analog = append(d.Analog, float64(v)*sip.AnalogUnit)
			}
			return packet{Packet: "io", Data: d, text: fmt.Sprintf("in %s, out %s, analog %.2f V", d.In, d.Out, d.Analog)}
		}
	case sip.TypePlaylist:
		if l := new(sip.Playlist); l.Parse(payload) == nil {
			d := playlistData{int(l.Sound), l.On, l.Name, l.Offset, float64(l.Length) / soundset.Rate}
			return packet{Packet: "playlist", Data: d, text: fmt.Sprintf("sound %d %q, %.2f s, sounds on: %t", d.Sound, d.Name, d.Seconds, d.On)}
		}
	}
	return rawPacket("unknown", payload)
}

func rawPacket(kind string, payload []byte) packet {
	d := rawData{hex.EncodeToString(payload)}
	return packet{Packet: kind, Data: d, text: d.Hex}
}

func standardPacket(s *sip.Standard) packet {
	d := standardData{
		s.Moving, float64(sip.Unwrap(0, s.X)) * sip.DistanceUnit, float64(sip.Unwrap(0, s.Y)) * sip.DistanceUnit,
		float64(s.Th) * sip.AngleUnit, float64(s.Left) * sip.SpeedUnit, float64(s.Right) * sip.SpeedUnit, float64(s.Battery) * sip.VoltageUnit,
		s.Bumpers&sip.StallLeft != 0, s.Bumpers&sip.StallRight != 0, float64(s.Control) * sip.AngleUnit,
		s.Flags&sip.FlagMotors != 0, s.Flags&sip.FlagSonar != 0, []sonarData{},
		int(s.Timer), float64(s.Analog) * sip.AnalogByteUnit, s.Digin, s.Digout,
	}
	var b strings.Builder
	fmt.Fprintf(&b, "x %.3f m, y %.3f m, heading %.3f rad (to %.3f), left %.3f m/s, right %.3f m/s, %.1f V",
		d.X, d.Y, d.Heading, d.Control, d.Left, d.Right, d.Battery)
	for _, on := range []struct {
		is   bool
		text string
	}{{d.Motors, "motors on"}, {d.Sonar, "sonar on"}, {d.StallLeft, "left wheel stalled"}, {d.StallRight, "right wheel stalled"}} {
		if on.is {
			b.WriteString(", " + on.text)
		}
	}
	for _, r := range s.Sonar {
		one := sonarData{int(r.Sonar), float64(r.Range) * sip.RangeUnit}
		d.Ranges = append(d.Ranges, one)
		fmt.Fprintf(&b, ", sonar %d %.3f m", one.Sonar, one.Range)
	}
	fmt.Fprintf(&b, ", analog %d %.2f V, in %06b, out %06b", d.AnalogPort, d.Analog, d.DigitalIn, d.DigitalOut)
	return packet{Packet: "standard", Data: d, text: b.String()}
}
