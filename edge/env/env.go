// Package env tells a program about the robot that it runs on: this package what factory and boot loader say. The folders below hold its files (robotfs), its
// configuration (platform), its use of memory, disk and network (hoststats), and FIFOs (fifo).
package env

import "os"

// Hardware answers for the factory and the boot loader of a robot, from files below its root. Each species has its own; the wiring chooses it.
type Hardware interface {
	// Serial returns the serial number as the cloud knows it, 8 lower-case hex digits for a Vector. fs.ErrNotExist is in the error's chain if the
	// robot has none.
	Serial(root *os.Root) (string, error)
	// Boot returns how the system was started. If the boot loader said nothing, that is the zero value and no error.
	Boot(root *os.Root) (Boot, error)
}

// Boot is how the boot loader started the system. The zero value is a normal boot of a robot at home.
type Boot struct {
	Dev      bool   // a development robot
	Recovery bool   // the button was held until the recovery system was chosen (VEC-BOOT-03)
	Slot     string // that runs, "a" or "b"; "": the boot loader named none
}
