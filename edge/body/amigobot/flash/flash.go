package flash

import (
	"fmt"
	"strconv"
	"strings"

	"kennel/infra/suggest"
)

// Key is one parameter; its number is the place in the manual's table.
type Key uint8

// The parameters (AMIGO-FLASH-01 to 37).
const (
	Type Key = iota
	Subtype
	Serial
	RotVelTop
	TransVelTop
	RotAccTop
	TransAccTop
	PwmMax
	Name
	SInfoCycle
	HostBaud
	Aux1Baud
	Aux2Baud
	IO0
	IO1
	IO2
	IO3
	IO4
	IO5
	LowBattery
	WatchDog
	RevCount
	Mpacs
	StallVal
	StallCount
	RotVelMax
	TransVelMax
	RotAcc
	RotDecel
	RotKp
	RotKv
	RotKi
	TransAcc
	TransDecel
	TransKp
	TransKv
	TransKi
	Count // number of parameters
)

// Kind is how a parameter is stored.
type Kind uint8

// The kinds of the manual's table.
const (
	Text Kind = iota
	Byte
	Int
)

// String returns "string", "byte" or "int".
func (k Kind) String() string { return [...]string{"string", "byte", "int"}[k] }

// MaxText is the most characters of a text (AMIGO-FLASH-09).
const MaxText = 20

// Param describes one parameter.
type Param struct {
	Keyword  string
	Kind     Kind
	Default  string
	Min, Max int // of a number
	Unit     string
	Constant bool
	Critical bool // a wrong value makes the robot drive badly (AMIGO-FLASH-39)
	Doc      string
}

var table = [Count]Param{
	Type:        {Keyword: "Type", Default: "Pioneer", Constant: true, Doc: "class of the robot, second text of the SYNC2 reply"},
	Subtype:     {Keyword: "Subtype", Default: "Amigo", Constant: true, Doc: "model of the robot, third text of the SYNC2 reply"},
	Serial:      {Keyword: "Serial", Default: "SIM00001", Constant: true, Doc: "serial number"},
	RotVelTop:   {"RotVelTop", Int, "360", 0, 65535, "deg/s", true, false, "hard limit of rotation speed"},
	TransVelTop: {"TransVelTop", Int, "2200", 0, 65535, "mm/s", true, false, "hard limit of translation speed"},
	RotAccTop:   {"RotAccTop", Int, "360", 0, 65535, "deg/s²", true, false, "hard limit of rotational acceleration"},
	TransAccTop: {"TransAccTop", Int, "4000", 0, 65535, "mm/s²", true, false, "hard limit of translational acceleration"},
	PwmMax:      {"PwmMax", Int, "255", 0, 65535, "", true, false, "largest motor pulse width; 255 is fully on"},
	Name:        {Keyword: "Name", Default: "not_set", Doc: "name of the robot, first text of the SYNC2 reply"},
	SInfoCycle:  {"SInfoCycle", Byte, "0", 0, 1, "", false, false, "cycle of information packets: 0 = 100 ms, 1 = 50 ms"},
	HostBaud:    {"HostBaud", Byte, "0", 0, 2, "", false, false, "speed of the Control port: 0, 1, 2 = 9600, 19200, 38400 bit/s"},
	Aux1Baud:    {"Aux1Baud", Byte, "0", 0, 2, "", false, false, "speed of port AUX1, as HostBaud"},
	Aux2Baud:    {"Aux2Baud", Byte, "0", 0, 2, "", false, false, "speed of port AUX2, as HostBaud"},
	IO0:         {"io0", Byte, "0", 0, 1, "", false, false, "port IO_0: 0 = input, 1 = output"},
	IO1:         {"io1", Byte, "0", 0, 1, "", false, false, "port IO_1: 0 = input, 1 = output"},
	IO2:         {"io2", Byte, "0", 0, 1, "", false, false, "port IO_2: 0 = input, 1 = output"},
	IO3:         {"io3", Byte, "0", 0, 1, "", false, false, "port IO_3: 0 = input, 1 = output"},
	IO4:         {"io4", Byte, "0", 0, 1, "", false, false, "port IO_4: 0 = input, 1 = output"},
	IO5:         {"io5", Byte, "0", 0, 1, "", false, false, "port IO_5: 0 = input, 1 = output"},
	LowBattery:  {"LowBattery", Int, "110", 0, 255, "0.1 V", false, false, "battery alarm below this voltage; below 10 V the robot shuts down"},
	WatchDog:    {"WatchDog", Int, "2000", 0, 65535, "ms", false, false, "time without a command after which the robot stops; 0 = never"},
	RevCount:    {"RevCount", Int, "23310", 1, 65535, "ticks", false, true, "encoder ticks of a 360 degree turn; see robotkit amigo revcount"},
	Mpacs:       {"Mpacs", Byte, "0", 0, 1, "", false, false, "1 = extended information packets"},
	StallVal:    {"StallVal", Int, "255", 0, 65535, "", false, false, "pulse width that counts as a stall; above PwmMax = never"},
	StallCount:  {"StallCount", Int, "100", 0, 65535, "ms", false, false, "time without motor power after a stall"},
	RotVelMax:   {"RotVelMax", Int, "200", 0, 360, "deg/s", false, false, "rotation speed limit at the start of a session"},
	TransVelMax: {"TransVelMax", Int, "300", 0, 2200, "mm/s", false, false, "translation speed limit at the start of a session"},
	RotAcc:      {"RotAcc", Int, "50", 1, 360, "deg/s²", false, false, "rotational acceleration"},
	RotDecel:    {"RotDecel", Int, "50", 1, 360, "deg/s²", false, false, "rotational deceleration"},
	RotKp:       {"RotKp", Int, "30", 0, 65535, "", false, true, "proportional gain of rotation"},
	RotKv:       {"RotKv", Int, "60", 0, 65535, "", false, true, "differential gain of rotation"},
	RotKi:       {"RotKi", Int, "0", 0, 65535, "", false, true, "integral gain of rotation"},
	TransAcc:    {"TransAcc", Int, "300", 1, 4000, "mm/s²", false, false, "translational acceleration"},
	TransDecel:  {"TransDecel", Int, "300", 1, 4000, "mm/s²", false, false, "translational deceleration"},
	TransKp:     {"TransKp", Int, "40", 0, 65535, "", false, true, "proportional gain of translation"},
	TransKv:     {"TransKv", Int, "80", 0, 65535, "", false, true, "differential gain of translation"},
	TransKi:     {"TransKi", Int, "0", 0, 65535, "", false, true, "integral gain of translation"},
}

// Param returns the description of k.
func (k Key) Param() Param { return table[k] }

// String returns the keyword.
func (k Key) String() string { return table[k].Keyword }

// Lookup returns the parameter with this keyword in any case (AMIGO-CF-03). The error suggests keywords.
func Lookup(keyword string) (Key, error) {
	keywords := make([]string, Count)
	for k := range Count {
		if strings.EqualFold(table[k].Keyword, keyword) {
			return k, nil
		}
		keywords[k] = table[k].Keyword
	}
	return 0, fmt.Errorf("unknown parameter %.40q%s", keyword, suggest.DidYouMean(keyword[:min(len(keyword), 2*MaxText)], keywords))
}

// Values are the values of all parameters. They compare with ==.
type Values struct {
	num  [Count]uint16
	text [Count]string
}

// Defaults returns the values of a new robot with serial number SIM00001.
func Defaults() Values {
	var v Values
	for k := range Count {
		if err := v.put(k, table[k].Default); err != nil {
			panic(err) // a mistake in the table
		}
	}
	return v
}

// Int returns the number k; 0 for a text.
func (v *Values) Int(k Key) int { return int(v.num[k]) }

// Value returns k as text, numbers in decimal.
func (v *Values) Value(k Key) string {
	if table[k].Kind == Text {
		return v.text[k]
	}
	return strconv.Itoa(v.Int(k))
}

// Set gives a variable a value: a text without quotes, a decimal number, or a hexadecimal one as 0xfa0 (AMIGO-CF-04). It refuses
// constants (AMIGO-CF-05) and values out of range.
func (v *Values) Set(keyword, value string) error {
	k, err := Lookup(keyword)
	if err != nil {
		return err
	}
	if table[k].Constant {
		return fmt.Errorf("%s is a constant of the robot and cannot be changed", k)
	}
	return v.put(k, value)
}

// SetSerial gives the robot its serial number, as its factory does.
func (v *Values) SetSerial(serial string) error { return v.put(Serial, serial) }

func (v *Values) put(k Key, value string) error {
	p := &table[k]
	if p.Kind == Text {
		bad := strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == ';' || r == '#' })
		if value == "" || len(value) > MaxText || bad >= 0 {
			return fmt.Errorf("%s %.40q: want 1 to %d printable ASCII characters without spaces, ; and #", k, value, MaxText)
		}
		v.text[k] = value
		return nil
	}
	digits, base := value, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(value), "0x"); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 16)
	if err != nil || int(n) < p.Min || int(n) > p.Max {
		return fmt.Errorf("%s %.40q: want %s", k, value, p.Range())
	}
	v.num[k] = uint16(n)
	return nil
}

// Range says what values the parameter takes, for people: "a number from 1 to 360 deg/s²".
func (p Param) Range() string {
	if p.Kind == Text {
		return fmt.Sprintf("a text of 1 to %d characters", MaxText)
	}
	return strings.TrimSpace(fmt.Sprintf("a number from %d to %d %s", p.Min, p.Max, p.Unit))
}
