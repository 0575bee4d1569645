package lifeos

import "fmt"

// Profile is the generation of the firmware.
type Profile uint8

// The profiles. They differ in the scripts they load (PLEO-VM-15, part of PLEO-VM-17).
const (
	Profile11 Profile = iota // 1.1, with packets to scripts
	Profile10                // 1.0
)

// ParseProfile returns the profile of that name: 1.1 or 1.0.
func ParseProfile(name string) (Profile, error) {
	for _, p := range [...]Profile{Profile11, Profile10} {
		if name == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("profile %.20q: want 1.1 or 1.0", name)
}

func (p Profile) String() string { return [...]string{"1.1", "1.0"}[p] }

// API returns the number by which scripts know the profile, as PLEO_API (PLEO-PBT-11).
func (p Profile) API() uint16 { return [...]uint16{110, 100}[p] }

// Versions returns the oldest and the newest version of the AMX files that the profile loads (PLEO-VM-17).
func (p Profile) Versions() (low, high uint8) {
	if p == Profile10 {
		return 8, 9
	}
	return 10, 10
}

// Startup returns the name of the script that the User VM runs first (PLEO-VM-15).
func (p Profile) Startup() string {
	if p == Profile10 {
		return "init"
	}
	return "startup"
}

// VMOf returns the machine that runs a script of that name, if the application does not say otherwise.
func (p Profile) VMOf(script string) VM {
	for _, a := range appScripts {
		if a.name == script {
			return a.vm
		}
	}
	if script == p.Startup() {
		return VMUser
	}
	return VMAux
}

// Block returns the bytes of header, data and stack that a script in the machine may have (PLEO-LIM-02, PLEO-LIM-06).
func (p Profile) Block(vm VM) int {
	switch vm {
	case VMSensor:
		return 3072
	case VMMain:
		return 4096
	case VMAux:
		if p == Profile11 {
			return 2560
		}
	}
	return 2048
}
