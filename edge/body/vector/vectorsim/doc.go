// Package vectorsim is Vector's body board at the other end of the wire: the same bytes, the same rhythm, the same watchdog. A head
// that talks to it through a pseudo-terminal or a socket cannot tell it from the device.
//
//	config.go  the settings of a board; own defaults with their reasons
//	board.go   the protocol, one call a period; no clock, no port, so that a test is its time
//	world.go   motors, battery, sensors; what a person does to them
//	ground.go  the body in a world (package plane): where its treads take it, what it finds there
//	imu.go     the chip of the inertial sensors in the head, which is on another wire
//	cubes.go   the light cubes in its world, and the radio that hears them
//	eye.go     the camera in the head, which draws the world while a program looks
//	poke.go    what a person does to the body
//	flash.go   the program memory and the boot-loader's rules: erase, write, validate by signature, start
//	sound.go   what the microphones hear, from a WAV file
//	pad.go     the factory's characters over the charging pad
//	button.go  how long the button is held at power on, and what the head boots then
//	stepped.go a board, its line and its time in one goroutine: whole robots faster than time
//	run.go     the wire: absolute deadlines each 5.12 ms, raw reads and writes
//	pty.go     a pseudo-terminal that acts like a UART
//	socket.go  a Unix socket that does, for heads that must not be late because the machine is busy
//
// A Board is the robot's body and stays; Run is one time of its power being on. Run ends with ErrShutdown when the head asks for it
// and with ErrPowerCut when the board gives up: no word from the head, an empty battery, a brown-out. Running it again is like
// pressing the robot's button.
//
// Rows: VEC-BODY-02 to 12, 19 to 33, part of VEC-BODY-18, VEC-WDOG-01, VEC-BOOT-01 to 05, VEC-CLI, VEC-DFU, VEC-HW-01 to 07, 13 to 18, 24, VEC-PWR-21 and 22.
package vectorsim
