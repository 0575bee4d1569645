// Package cubesim simulates Vector's light cube at the other end of the radio: the same characteristics and the same bytes, a cell that can be taken out, lights that play the steps
// that were written, and an accelerometer whose samples come from the world that the cube is in.
//
//	cube.go   one cube; Step gives it its time
//	radio.go  a socket by which a robot hears cubes and connects with them (edge/cube.SocketPath)
//
// A cube sends as its world's time passes. A machine that is busy makes the world slow, and loses no tap.
package cubesim
