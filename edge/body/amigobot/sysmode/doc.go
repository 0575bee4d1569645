// Package sysmode is the protocol by which tools edit the parameters and the memory of a robot in System mode: its client, and the
// robot's half as a function over a memory.
//
// The manual does not give the bytes of the genuine tools, so this protocol is this project's own (AMIGO-OPEN-02). Simulated robots speak
// it on their System port. A real robot does not understand it and ignores it.
//
// The frames are those of package sip. The payload of a request and of its reply is:
//
//	request  number, sequence, arguments
//	reply    number, sequence, 0, results        number and sequence are the request's
//	reply    number, sequence, 1, reason         the request is refused; the reason is text for people
//
//	0xE0  Hello       -                                    version of AmigOS as 1.3; drops edits that were not committed
//	0xE1  ReadParams  -                                    image of the parameters in FLASH (package flash)
//	0xE2  WriteParam  number of the parameter, value text  -; edits a copy in the robot
//	0xE3  Commit      -                                    -; stores the edited copy in FLASH
//	0xE4  Erase       address                              -; fills the region with 0xFF
//	0xE5  WritePage   address, 1 to 128 bytes              -; the bytes must be erased or the same already
//	0xE6  Verify      address, length, CRC-32              -; refused if the memory has another CRC-32 (IEEE)
//	0xE7  Leave       -                                    -; the robot then resets and loads what is in FLASH
//
// Addresses, lengths and checksums have 4 bytes, little endian. The client has one request under way and repeats it with the same
// sequence number until it hears the reply; every request but Leave may be carried out twice without harm. Leave is sent once.
//
// The memory has two regions (AMIGO-DL-03): 64 kB of program at 0, inside the processor, and 1 MB of sounds at 0x200000. Where the genuine
// robot has its sounds is unknown; that address is the processor's first external area.
package sysmode
