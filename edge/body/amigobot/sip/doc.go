// Package sip is the codec of the serial protocol between an AmigoBot, whose controller runs AmigOS, and its client. It encodes and
// decodes both directions: commands to the robot, server information packets (SIPs) to the client.
//
//	 2       1       1        count-3   2
//	+-------+-------+--------+---------+----------+
//	| FA FB | count | number | data    | checksum |    everything little endian but the checksum (AMIGO-PKT-01 to 08)
//	+-------+-------+--------+---------+----------+
//	                  command number, then [3B lo hi], [1B lo hi] or [2B len text]      (AMIGO-PKT-15)
//	                  packet type, then the packet's fields                             (AMIGO-PKT-13)
//
// Count is the number of bytes behind it, 3 to 200. The payload of a frame is everything between count and checksum, so its first
// byte is the command number or the packet type. A packet of an unknown type stays a payload, and AppendFrame sends it again.
//
// Values stay in raw device units; convert.go converts them. Only Identity, Config and Playlist allocate, for their strings.
//
// Sources: AmigoBot Technical Manual 1.3, chapters 4 and 6; facts seen in genuine programs. Doubts and what was decided:
//
//   - A packet has up to 198 bytes of payload; a longer one is not sent and not accepted (AMIGO-PKT-03).
//   - A string argument is length-prefixed; one whose first byte cannot be its length is NUL-terminated (AMIGO-PKT-05).
//   - An incomplete packet is discarded 100 ms after its last byte was due at 9600 bit/s, because the longest packet alone takes
//     211 ms there (AMIGO-PKT-09).
//   - Angles are in radians of 2π/4096, though the manual says degrees (AMIGO-SIP-05).
//   - Bytes behind the fields of a standard packet or a CONFIGpac come from newer firmware. The former are kept, the latter are
//     ignored (AMIGO-SIP-19, AMIGO-SIP-21).
package sip
