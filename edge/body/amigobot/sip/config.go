package sip

import "encoding/binary"

// Config is the CONFIGpac: the parameters of the robot, in wire order (AMIGO-CFG-01 to 36). Those called current are the values of the
// session, the others those of the FLASH. Speeds are in mm/s and deg/s, accelerations in mm/s² and deg/s².
type Config struct {
	Type, Subtype, Serial     string
	FourMots                  uint8
	RotVelTop, TransVelTop    uint16 // hard limits
	RotAccTop, TransAccTop    uint16 // hard limits
	PwmMax                    uint16 // 255 is fully on
	Name                      string
	InfoCycle                 uint8 // 0: a Standard each 100 ms; 1: each 50 ms
	HostBaud, Aux1Baud        uint8 // 0, 1, 2: 9600, 19200, 38400 bit/s
	Gripper, FrontSonar       uint16
	AuxSonar                  uint8
	LowBattery                uint16 // VoltageUnit
	RevCount                  uint16 // current; encoder ticks of a full turn
	WatchDog                  uint16 // ms
	P2Mpacs                   uint8  // 1: alternative standard packet
	StallVal                  uint16 // PWM
	StallCount                uint16 // ms
	JoyVel, JoyRVel           uint16
	RotVelMax, TransVelMax    uint16 // current
	RotAcc, RotDecel          uint16 // current
	RotKp, RotKv, RotKi       uint16 // current
	TransAcc, TransDecel      uint16 // current
	TransKp, TransKv, TransKi uint16 // current
}

// fields returns pointers to all fields in wire order.
func (c *Config) fields() [36]any {
	return [...]any{
		&c.Type, &c.Subtype, &c.Serial, &c.FourMots, &c.RotVelTop, &c.TransVelTop, &c.RotAccTop, &c.TransAccTop, &c.PwmMax,
		&c.Name, &c.InfoCycle, &c.HostBaud, &c.Aux1Baud, &c.Gripper, &c.FrontSonar, &c.AuxSonar, &c.LowBattery, &c.RevCount,
		&c.WatchDog, &c.P2Mpacs, &c.StallVal, &c.StallCount, &c.JoyVel, &c.JoyRVel, &c.RotVelMax, &c.TransVelMax, &c.RotAcc,
		&c.RotDecel, &c.RotKp, &c.RotKv, &c.RotKi, &c.TransAcc, &c.TransDecel, &c.TransKp, &c.TransKv, &c.TransKi,
	}
}

// Append appends c to dst as one packet. It returns ErrLength if the strings are too long; dst is then unchanged.
func (c *Config) Append(dst []byte) ([]byte, error) {
	b := append(open(dst), TypeConfig)
	for _, field := range c.fields() {
		switch v := field.(type) {
		case *string:
			b = append(append(b, *v...), 0)
		case *uint8:
			b = append(b, *v)
		case *uint16:
			b = binary.LittleEndian.AppendUint16(b, *v)
		}
	}
	return seal(b, len(dst))
}

// Parse sets c from the payload of a packet of TypeConfig. On ErrPayload c is unchanged.
func (c *Config) Parse(p []byte) error {
	if len(p) == 0 {
		return ErrPayload
	}
	p = p[1:]
	var got Config
	for _, field := range got.fields() {
		ok := false
		switch v := field.(type) {
		case *string:
			*v, p, ok = cutString(p)
		case *uint8:
			if ok = len(p) >= 1; ok {
				*v, p = p[0], p[1:]
			}
		case *uint16:
			if ok = len(p) >= 2; ok {
				*v, p = binary.LittleEndian.Uint16(p), p[2:]
			}
		}
		if !ok {
			return ErrPayload
		}
	}
	*c = got
	return nil
}
