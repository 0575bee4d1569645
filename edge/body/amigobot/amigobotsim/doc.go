// Package amigobotsim is an AmigoBot with AmigOS at the other end of the wire: the same bytes, the same rhythm, the same watchdogs. A client
// that talks to it through TCP, a socket or a pseudo-terminal cannot tell it from the robot.
//
//	config.go   what a robot is made of: memory, build, world; own defaults
//	robot.go    the handshake and the control cycle, 10 ms a Step; no clock, no port, so that a test is its time
//	command.go  what each command does
//	motion.go   trapezoids, PID, stall monitor, motors, encoders, odometry
//	sonar.go    firing order, and echoes in the world
//	io.go       digital, analog and auxiliary ports
//	sound.go    sounds and their playlist
//	battery.go  charge and alarms
//	panel.go    buttons, lights, self tests, self-wander
//	report.go   the packets to the client
//	system.go   System mode, for the desk tools
//	line.go     what a link does to bytes: loss, delay, radio range, a slow port
//	modem.go    the radio modems between a host and the robot
//	state.go    what an onlooker sees
//	run.go      a robot in real time, on lines
//	stepped.go  a robot, its line and its time in one goroutine
//
// Numbers are SI; ticks of the encoders and the protocol's own units appear in the motion server and in packets. Products are rounded before
// they are added, by float64(), so that every processor lives the same life from the same seed.
//
// The session stays open when a TCP client goes away, as on a serial line; the next client finds it and may end it (AMIGO-SYNC-09).
//
// Rows: AMIGO-SYNC, CMD, MOT, PID, POS, SON, IO, SND, SAFE, UI, TST, FLASH-38, LINK-08, RF, SIM, PHY, OPEN.
package amigobotsim
