// Package flash defines the AmigoBot's 37 parameters in FLASH memory: their meaning, their values, and how they are stored.
//
// A parameter is a text, a byte or a 16-bit integer (AMIGO-FLASH-01 to 37). The first eight are constants of the robot, the others are
// variables that its owner may edit. AmigOS loads all of them at power-on and reset (AMIGO-FLASH-38).
//
// A parameter file such as AmigoBot.cf holds the variables alone, one "Keyword value" a line (AMIGO-CF-11). A comment begins with ; or #
// (AMIGO-OPEN-04), so no value has these characters. The client parameter files have the same form (AMIGO-PHY-04).
//
// The image of the FLASH page has 143 bytes. Its layout is this project's own, because the manual gives none:
//
//	4    "AFP1"
//	20   each text, NUL-padded
//	1    each byte              all parameters in the order of the table
//	2    each integer, little endian
//	4    CRC-32 (IEEE) of everything before it, little endian
//
// Source: AmigoBot Technical Manual 1.3, chapter 6. The manual gives no ranges. A code takes the values it defines; velocities and
// accelerations are limited by the robot's constants; an acceleration or RevCount of 0 is refused, because AmigOS divides by them.
package flash
