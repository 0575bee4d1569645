// Package imu reads the inertial sensors in the robot's head: an accelerometer and a gyro of three axes each, behind the head processor's SPI
// (VEC-IMU-01, part of VEC-ARCH-08, part of VEC-FSY-04). The body's wire does not carry them.
//
//	chip.go     registers, ranges, rates; the block of a sample as bytes     bus.go      a transfer: spidev of Linux, a socket of a simulated chip
//	session.go  from reset to samples, and what a chip does that is broken   reader.go   keeps a session going, leaves the newest sample
//
// The source says only that there is a six-axis IMU at /dev/spidev0.0. That it is a Bosch BMI160 is our assumption: a common part of
// that kind whose data sheet is public. Its id is checked, so that another part is refused and not misread. Where its axes point in the
// head is not known either: Config.Axes is a setting, and the default takes the head's own (X forward, Y left, Z up). The spidev bus is
// written to the kernel's interface and has not seen a chip.
//
// One transfer is one datagram each way, both of the same length: the first byte out is the register, with bit 7 set to read, and the data
// read begin with the second byte in. The register number increments by itself.
//
//	0x00 chip id, 0xd1          0x40 acc conf: rate in bits 0 to 3, filter 4 to 6
//	0x02 errors                 0x41 acc range
//	0x03 power of the parts     0x42 gyr conf
//	0x0c gyro x y z, i16 LE     0x43 gyr range
//	0x12 accel x y z, i16 LE    0x7e command
//	0x18 time, u24 LE, 39.0625 us a count; the samples fall on its multiples
//
// Its FIFO is not used: the loop wants the newest sample, and the chip's own clock says how old that is.
package imu
