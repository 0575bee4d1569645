// Package vectordriver drives Vector's body board over its serial link: it owns the port, the session and the conversion to SI. The bytes
// belong to package spine; package vectorsim is the board on the other end.
//
// A session: stop the motors, ask for the version, and if no data frames flow then leave the boot-loader. From then on the body
// sends a frame each 5.12 ms and the loop answers each with one (VEC-MOT-05); a body that hears nothing while it sends 200 of them
// cuts the power (VEC-BODY-11). A body that restarts is taken up again within a frame of its boot-loader's, as a new Epoch.
//
//	calib.go    every number of this body, with row and unit
//	tree.go     motors, sensors and lights by their structure-tree names
//	convert.go  raw frames to body.Sense and back
//	faults.go   the robot's reports: fault codes and RobotStatus bits
//	port.go     lines, and the tty
//	driver.go   session, read, write
//	firmware.go the body's program: its version, and installing another one at start (VEC-DFU)
//	factory.go  the factory's command line, off at home (VEC-CLI)
package vectordriver
