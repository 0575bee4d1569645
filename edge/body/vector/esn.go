package vector

import (
	"fmt"
	"strconv"

	"kennel/certs/thing"
)

// ESN is the electronic serial number of a robot, the first word of its medical record (VEC-STOR-03). Its prefix says nothing that
// may be relied on.
type ESN uint32

// ParseESN reads a serial number as it is shown: 8 lower-case hex digits.
func ParseESN(s string) (ESN, error) {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil || ESN(n).String() != s {
		return 0, fmt.Errorf("serial number %.20q: want 8 lower-case hex digits", s)
	}
	return ESN(n), nil
}

// String returns the 8 digits that are printed on the robot and stand in its cloud identity and its Bluetooth status.
func (e ESN) String() string { return fmt.Sprintf("%08x", uint32(e)) }

// Thing returns the robot's thing id, such as vic:00e20100.
func (e ESN) Thing() thing.ID { return thing.MustParse(string(thing.Vector) + ":" + e.String()) }
