// Package spine is the codec of the serial link between Vector's head and its body board, both ends of it.
//
//	 4          2     2     size       4
//	+----------+-----+-----+----------+-------+
//	| sync     | typ | siz | payload  | CRC32 |     everything little endian (VEC-BODY-12)
//	+----------+-----+-----+----------+-------+
//	  AA 48 32 42  head to body ("H2B")
//	  AA 42 32 48  body to head ("B2H")             (VEC-BODY-04)
//
// The type fixes the size (VEC-BODY-05). The checksum covers the payload alone: CRC-32 of IEEE without its final inversion
// (VEC-BODY-06). The link is a 3 Mbit/s UART: the body sends a 768-byte data frame each 5.12 ms, the head answers each with a
// 64-byte one, and a few commands are answered by ACK, NAK or a message of their own.
//
// Every message is a struct with ParsePayload and AppendFrame, for both directions, because the simulated board is the other end.
// Unexplained bytes are kept in fields named Gap, so that a parsed message can be appended again bit by bit. Values stay in raw
// device units; package vector converts them. A Parser finds the frames in a stream and survives whatever is between them.
// Nothing here allocates once the caller's buffers have their size.
//
// Sources: Anki Vector technical reference, chapter 12; facts seen in genuine programs. Doubts and what was decided:
//
//   - Order of type and size: from the text, its figure is lost (VEC-BODY-03).
//   - Offsets of lights, power flags and range block: a recording of a genuine head and its library put them elsewhere than the book's tables;
//     Layout holds both, Genuine is the default (VEC-BODY-H02, B02).
//   - Mode change: a running application keeps running and sends data frames, the boot-loader starts the application. Erase, firmware block and
//     validation enter the boot-loader (VEC-BODY-H05).
//   - Microphones: 640 bytes, signed, sample-major; MicLayout holds the other readings (VEC-BODY-25).
//   - Version: the last 16 of 40 bytes (VEC-BODY-B05).
//   - ACK: positive; NAK: zero or negative (VEC-BODY-09).
//   - Boot-loader frame: 4 bytes, content unknown (VEC-BODY-B03).
//   - Lights message: 12 colour bytes, 4 unknown (VEC-BODY-H07).
package spine
