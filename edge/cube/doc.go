// Package cube is the robot's side of Vector's light cube: a small block with four lights and an accelerometer, which speaks Bluetooth LE.
//
//	frames.go  the bytes of the cube's characteristics
//	lights.go  patterns of lights as the steps that a cube plays
//	feel.go    taps, motion and orientation from the accelerometer's samples
//	radio.go   the radio as this package needs it
//	socket.go  a radio at the other end of a local socket, which package cubesim serves
//	driver.go  finds a cube, connects with it, hears it, loses it; which one the robot prefers
//
// Lengths are in bytes, accelerations in thousandths of g as on the wire, times are time.Duration. The values of the wire are little endian (part of VEC-CCU-01).
//
// The source leaves these open, and this package decides:
//   - The unit of a step's duration is "milliseconds(?)" in a byte: a tick of 30 ms (VEC-CUBEIO-03).
//   - It does not say where the steps of a light end. Here a light repeats the steps from its own start index to the next higher start index of another light, or to
//     the last step that was set.
//   - The unit of the battery's reading: a count is a millivolt (VEC-CUBEIO-02).
//   - Limits of taps and motion are own defaults (part of VEC-CUBEIO-07).
package cube
